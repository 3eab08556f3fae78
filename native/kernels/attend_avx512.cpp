#include "kernels/attend.h"
#include "kernels/simd_avx512.h"

namespace carillon::kernels {
namespace {

/// e^x for x <= 0, relative error below 1e-6; 0 below -87 (and for no number).
inline __m512 exp_negative(__m512 x) {
  const __m512 clamped = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
  const __m512 powers = _mm512_roundscale_ps(_mm512_mul_ps(clamped, _mm512_set1_ps(1.44269504089f)),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, so that the difference keeps its low bits; then the Taylor series on |r| <= ln(2) / 2.
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

/// Turns scores into probabilities without their common divisor; returns its inverse.
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

void attend_avx512(const uint16_t* query, const AttendRows& keys, const AttendRows& values, int64_t length, int64_t dim,
                   float scale, float* scores, uint16_t* out) {
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

}  // namespace carillon::kernels
