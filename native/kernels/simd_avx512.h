#pragma once
// Vector functions of the *_avx512.cpp files, which are compiled for AVX512-BF16. All have internal linkage. Otherwise
// the linker could call their AVX-512 code from files that also run on other machines.
#include <immintrin.h>

#include <cstdint>

#include "kernels/vector_kernels.h"

namespace {

using Mask = __mmask16;

inline Mask first_lanes(int64_t count) {
  return count >= 16 ? Mask(0xffff) : count <= 0 ? Mask(0) : Mask((1u << count) - 1);
}

/// 16 bfloat16 as float32.
inline __m512 load(const uint16_t* p, Mask mask) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
}

/// Rounds to nearest even.
inline void store(uint16_t* p, Mask mask, __m512 v) {
  _mm256_mask_storeu_epi16(p, mask, (__m256i)_mm512_cvtneps_pbh(v));
}

inline __m512 load(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
inline void store(float* p, Mask mask, __m512 v) { _mm512_mask_storeu_ps(p, mask, v); }

/// Lane i of the result is acc[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1], for 32 bfloat16 in `a` and in `b`.
inline __m512 multiply_add(__m512 acc, __m512i a, __m512i b) { return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b); }

struct SineSquared {
  __m512 value;  // sin(x)^2, absolute error below 5e-7 for |x| up to 1e4
  __m512 slope;  // sin(2 x), its derivative, absolute error below 2e-5
};

/// Writes x as pi * n + a with |a| <= pi / 2. The value is an even polynomial in a, fitted for the smallest maximum
/// error. The slope is the derivative of the polynomial.
inline SineSquared sine_squared_and_slope(__m512 x) {
  const __m512 turns = _mm512_mul_ps(x, _mm512_set1_ps(0.31830988618f));
  const __m512 whole = _mm512_roundscale_ps(turns, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // Subtract n * pi in two steps, with pi split into two constants. This preserves the low bits of the difference.
  __m512 angle = _mm512_fnmadd_ps(whole, _mm512_set1_ps(3.140625f), x);
  angle = _mm512_fnmadd_ps(whole, _mm512_set1_ps(9.67653589793e-4f), angle);
  const __m512 q = _mm512_mul_ps(angle, angle);
  constexpr float kCoefficients[] = {9.9999980e-01f,  -3.3333215e-01f, 4.4441294e-02f,
                                     -3.1707650e-03f, 1.3871641e-04f,  -3.5407822e-06f};
  __m512 p = _mm512_set1_ps(kCoefficients[5]), d = _mm512_set1_ps(6 * kCoefficients[5]);
  for (int power = 4; power >= 0; --power) {
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(kCoefficients[power]));
    d = _mm512_fmadd_ps(d, q, _mm512_set1_ps(static_cast<float>(power + 1) * kCoefficients[power]));
  }
  return {_mm512_mul_ps(p, q), _mm512_mul_ps(d, _mm512_add_ps(angle, angle))};
}

/// Snake activation: x + gain * sin(frequency * x)^2.
inline __m512 snake(__m512 x, __m512 frequency, __m512 gain) {
  return _mm512_fmadd_ps(sine_squared_and_slope(_mm512_mul_ps(x, frequency)).value, gain, x);
}

/// Epilogue of a tile, for AVX-512 and AMX. `sums(m, half)` returns the sums of row m for 16 outputs, beginning with
/// output 16 * half.
template <typename Sums>
inline void finish_tile(int rows, int outputs, const carillon::kernels::TileEpilogue& epilogue, const Sums& sums) {
  for (int half = 0; half < 2; ++half) {
    const int column = half * 16;
    const Mask mask = first_lanes(outputs - column);
    if (!mask) return;
    const auto channel = [&](const float* p) {
      return p ? _mm512_maskz_loadu_ps(mask, p + column) : _mm512_setzero_ps();
    };
    const __m512 bias = channel(epilogue.bias);
    const __m512 frequency = channel(epilogue.snake_frequency);
    const __m512 gain = channel(epilogue.snake_gain);
    for (int m = 0; m < rows; ++m) {
      __m512 y = _mm512_add_ps(sums(m, half), bias);
      if (epilogue.residual) {
        y = _mm512_add_ps(y, load(epilogue.residual + m * epilogue.residual_stride + column, mask));
      }
      if (epilogue.out) store(epilogue.out + m * epilogue.out_stride + column, mask, y);
      if (epilogue.out_float) {
        _mm512_mask_storeu_ps(epilogue.out_float + m * epilogue.out_float_stride + column, mask, y);
      }
      if (epilogue.snake_out) {
        store(epilogue.snake_out + m * epilogue.snake_stride + column, mask, snake(y, frequency, gain));
      }
    }
  }
}

}  // namespace
