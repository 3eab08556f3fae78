#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {

namespace {

constexpr int kVector = 32;  // bfloat16 elements of a vector

/// Loads up to 32 elements. If `count` is lower, the rest of the vector is zero.
inline __m512i load_pairs(const uint16_t* p, int64_t count) {
  if (count >= kVector) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), p);
}

/// Two partial sums of each row: even and odd vectors of the columns.
template <int kRows>
using Sums = __m512[kRows][2];
/// Number of outputs that take a part of the columns one after another.
constexpr int kGroup = 8;

/// Adds the products of the columns begin .. end - 1 with one output's weights.
template <int kRows>
inline void add_products(const uint16_t* x, const uint16_t* weight, int64_t depth, int64_t begin, int64_t end,
                         Sums<kRows>& sums) {
  __m512 even[kRows], odd[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) even[r] = sums[r][0], odd[r] = sums[r][1];
  int64_t k = begin;
  for (; k + 2 * kVector <= end; k += 2 * kVector) {
    // What the next group reads. Into L2: fetches into L1 would wait for one another.
    _mm_prefetch(reinterpret_cast<const char*>(weight + kGroup * depth + k), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(weight + kGroup * depth + k + kVector), _MM_HINT_T1);
    const __m512i w0 = _mm512_loadu_si512(weight + k);
    const __m512i w1 = _mm512_loadu_si512(weight + k + kVector);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      even[r] = multiply_add(even[r], _mm512_loadu_si512(x + r * depth + k), w0);
      odd[r] = multiply_add(odd[r], _mm512_loadu_si512(x + r * depth + k + kVector), w1);
    }
  }
  for (; k < end; k += kVector) {
    const __m512i w = load_pairs(weight + k, end - k);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) even[r] = multiply_add(even[r], load_pairs(x + r * depth + k, end - k), w);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r][0] = even[r], sums[r][1] = odd[r];
}

template <int kRows = kGemvRows>
void gemv(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
          uint16_t* y, int64_t y_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return gemv<kRows - 1>(x, rows, weight, outputs, depth, bias, y, y_stride);
  }
  // Several rows of x exceed the L1 cache.
  constexpr int64_t kCachedElements = 8192, kPart = kCachedElements / kRows / (2 * kVector) * (2 * kVector);
  for (int64_t first = 0; first < outputs; first += kGroup) {
    const int64_t count = outputs - first < kGroup ? outputs - first : kGroup;
    Sums<kRows> sums[kGroup] = {};
    for (int64_t begin = 0, end; begin < depth; begin = end) {
      end = depth - begin < kPart ? depth : begin + kPart;
      for (int64_t o = 0; o < count; ++o) {
        add_products<kRows>(x, weight + (first + o) * depth, depth, begin, end, sums[o]);
      }
    }
    for (int64_t o = 0; o < count; ++o) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const float total = _mm512_reduce_add_ps(_mm512_add_ps(sums[o][r][0], sums[o][r][1]));
        store(y + r * y_stride + first + o, Mask(1), _mm512_set1_ps(total + (bias ? bias[first + o] : 0.0f)));
      }
    }
  }
}

}  // namespace

void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride) {
  gemv(x, rows, weight, outputs, depth, bias, y, y_stride);
}

template <typename Element>
void snake_row_avx512(const Element* x, float frequency, float gain, Element* y, int64_t length) {
  const __m512 f = _mm512_set1_ps(frequency), g = _mm512_set1_ps(gain);
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    store(y + i, mask, snake(load(x + i, mask), f, g));
  }
}

template <typename Element>
SnakeGradients snake_row_backward_avx512(const Element* x, const Element* dy, float frequency, float gain, Element* dx,
                                         int64_t length) {
  const __m512 f = _mm512_set1_ps(frequency), slope_gain = _mm512_set1_ps(gain * frequency);
  __m512 of_frequency = _mm512_setzero_ps(), of_gain = _mm512_setzero_ps();
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    const __m512 value = load(x + i, mask), upstream = load(dy + i, mask);
    const SineSquared wave = sine_squared_and_slope(_mm512_mul_ps(value, f));
    const __m512 slope = _mm512_mul_ps(upstream, wave.slope);
    of_gain = _mm512_fmadd_ps(upstream, wave.value, of_gain);
    of_frequency = _mm512_fmadd_ps(slope, value, of_frequency);
    store(dx + i, mask, _mm512_fmadd_ps(slope, slope_gain, upstream));
  }
  return {gain * _mm512_reduce_add_ps(of_frequency), _mm512_reduce_add_ps(of_gain)};
}

template void snake_row_avx512(const float*, float, float, float*, int64_t);
template void snake_row_avx512(const uint16_t*, float, float, uint16_t*, int64_t);
template SnakeGradients snake_row_backward_avx512(const float*, const float*, float, float, float*, int64_t);
template SnakeGradients snake_row_backward_avx512(const uint16_t*, const uint16_t*, float, float, uint16_t*, int64_t);

}  // namespace carillon::kernels
