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

/// Computes one output for each of kRows rows. Reads the weight once, from front to back.
template <int kRows>
inline void dot(const uint16_t* x, const uint16_t* weight, int64_t depth, float bias, uint16_t* y, int64_t y_stride) {
  constexpr int64_t kPrefetchElements = 2048;
  __m512 even[kRows], odd[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = _mm512_setzero_ps();
  int64_t k = 0;
  for (; k + 2 * kVector <= depth; k += 2 * kVector) {
    _mm_prefetch(reinterpret_cast<const char*>(weight + k + kPrefetchElements), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(weight + k + kPrefetchElements + kVector), _MM_HINT_T0);
    const __m512i w0 = _mm512_loadu_si512(weight + k);
    const __m512i w1 = _mm512_loadu_si512(weight + k + kVector);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      even[r] = multiply_add(even[r], _mm512_loadu_si512(x + r * depth + k), w0);
      odd[r] = multiply_add(odd[r], _mm512_loadu_si512(x + r * depth + k + kVector), w1);
    }
  }
  for (; k < depth; k += kVector) {
    const __m512i w = load_pairs(weight + k, depth - k);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) even[r] = multiply_add(even[r], load_pairs(x + r * depth + k, depth - k), w);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const float total = _mm512_reduce_add_ps(_mm512_add_ps(even[r], odd[r])) + bias;
    store(y + r * y_stride, Mask(1), _mm512_set1_ps(total));
  }
}

template <int kRows = kGemvRows>
void gemv(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
          uint16_t* y, int64_t y_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return gemv<kRows - 1>(x, rows, weight, outputs, depth, bias, y, y_stride);
  }
  for (int64_t o = 0; o < outputs; ++o) {
    dot<kRows>(x, weight + o * depth, depth, bias ? bias[o] : 0.0f, y + o, y_stride);
  }
}

}  // namespace

void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride) {
  gemv(x, rows, weight, outputs, depth, bias, y, y_stride);
}

namespace {

/// e^x for x <= 0 with a relative error below 1e-6; 0 below -87 and for NaN.
inline __m512 exp_negative(__m512 x) {
  const __m512 clamped = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
  const __m512 powers = _mm512_roundscale_ps(_mm512_mul_ps(clamped, _mm512_set1_ps(1.44269504089f)),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // r = clamped - powers * ln 2, with ln 2 in two parts to keep the low bits of r. Then p is the Taylor series of e^r.
  __m512 r = _mm512_fnmadd_ps(powers, _mm512_set1_ps(0.693359375f), clamped);
  r = _mm512_fnmadd_ps(powers, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.0f / 720);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, clamped, _CMP_GE_OQ), p, powers);
}

float dot(const uint16_t* a, const uint16_t* b, int64_t dim) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t d = 0; d < dim; d += 32) sum = multiply_add(sum, _mm512_loadu_si512(a + d), _mm512_loadu_si512(b + d));
  return _mm512_reduce_add_ps(sum);
}

/// Replaces each score by exp(score - highest score). Returns 1 / sum of the exponentials.
float exponentiate(float* scores, int64_t length) {
  __m512 highest = _mm512_set1_ps(scores[0]);
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    highest = _mm512_mask_max_ps(highest, mask, highest, _mm512_maskz_loadu_ps(mask, scores + i));
  }
  const __m512 shift = _mm512_set1_ps(_mm512_reduce_max_ps(highest));
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    const __m512 e = exp_negative(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, scores + i), shift));
    _mm512_mask_storeu_ps(scores + i, mask, e);
    sum = _mm512_mask_add_ps(sum, mask, sum, e);
  }
  return 1.0f / _mm512_reduce_add_ps(sum);
}

}  // namespace

void attend_avx512(const uint16_t* query, const HeadRows<uint16_t>& keys, const HeadRows<uint16_t>& values,
                   int64_t length, int64_t dim, float scale, float* scores, uint16_t* out) {
  for (int64_t i = 0; i < length; ++i) scores[i] = scale * dot(query, keys.data + i * keys.stride, dim);
  const __m512 inverse = _mm512_set1_ps(exponentiate(scores, length));
  constexpr Mask kAll = 0xffff;
  for (int64_t d = 0; d < dim; d += 32) {
    __m512 low = _mm512_setzero_ps(), high = _mm512_setzero_ps();
    for (int64_t i = 0; i < length; ++i) {
      const __m512 weight = _mm512_set1_ps(scores[i]);
      const uint16_t* value = values.data + i * values.stride + d;
      low = _mm512_fmadd_ps(weight, load(value, kAll), low);
      high = _mm512_fmadd_ps(weight, load(value + 16, kAll), high);
    }
    store(out + d, kAll, _mm512_mul_ps(low, inverse));
    store(out + d + 16, kAll, _mm512_mul_ps(high, inverse));
  }
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
