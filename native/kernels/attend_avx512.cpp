// Attention of one position over a bfloat16 cache. Two queries of a group read the cache together.
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

constexpr int kLanes = 16, kVector = 32;  // float32 and bfloat16 elements of a vector
constexpr Mask kAll = 0xffff;

inline void prefetch_ahead(const uint16_t* p) {
  constexpr int64_t kAheadElements = 8192;
  _mm_prefetch(reinterpret_cast<const char*>(p + kAheadElements), _MM_HINT_T1);
}

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

/// Replaces each score by exp(score - highest score). Returns 1 / sum of the exponentials.
float exponentiate(float* scores, int64_t length) {
  __m512 highest = _mm512_set1_ps(scores[0]);
  for (int64_t i = 0; i < length; i += kLanes) {
    const Mask mask = first_lanes(length - i);
    highest = _mm512_mask_max_ps(highest, mask, highest, _mm512_maskz_loadu_ps(mask, scores + i));
  }
  const __m512 shift = _mm512_set1_ps(_mm512_reduce_max_ps(highest));
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < length; i += kLanes) {
    const Mask mask = first_lanes(length - i);
    const __m512 e = exp_negative(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, scores + i), shift));
    _mm512_mask_storeu_ps(scores + i, mask, e);
    sum = _mm512_mask_add_ps(sum, mask, sum, e);
  }
  return 1.0f / _mm512_reduce_add_ps(sum);
}

/// Sums of four vectors.
inline __m128 sums_of(const __m512 (&v)[4]) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
  const __m512 quarters = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps(quarters, 1));
  return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

/// Writes scale * query * key to scores [kQueries, length].
template <int kQueries>
void score(const uint16_t* queries, const HeadRows<uint16_t>& keys, int64_t length, int64_t dim, float scale,
           float* scores) {
  constexpr int kKeys = 4;
  for (int64_t first = 0; first < length; first += kKeys) {
    const Mask mask = length - first < kKeys ? first_lanes(length - first) : Mask(0xf);
    const uint16_t* rows[kKeys];
    for (int i = 0; i < kKeys; ++i) rows[i] = keys.data + (mask >> i & 1 ? first + i : first) * keys.stride;
    __m512 sums[kQueries][kKeys];
    for (auto& of_query : sums) {
      for (__m512& sum : of_query) sum = _mm512_setzero_ps();
    }
    for (int64_t d = 0; d < dim; d += kVector) {
#pragma GCC unroll 4
      for (int i = 0; i < kKeys; ++i) {
        prefetch_ahead(rows[i] + d);
        const __m512i key = _mm512_loadu_si512(rows[i] + d);
#pragma GCC unroll 2
        for (int q = 0; q < kQueries; ++q) {
          sums[q][i] = multiply_add(sums[q][i], _mm512_loadu_si512(queries + q * dim + d), key);
        }
      }
    }
    for (int q = 0; q < kQueries; ++q) {
      const __m128 products = _mm_mul_ps(_mm_set1_ps(scale), sums_of(sums[q]));
      _mm_mask_storeu_ps(scores + q * length + first, static_cast<__mmask8>(mask), products);
    }
  }
}

/// Dimensions d .. d + kVectors * kLanes - 1 of the result.
template <int kQueries, int kVectors>
void mix(const float* scores, const float (&inverse)[kQueries], const HeadRows<uint16_t>& values, int64_t length,
         int64_t dim, int64_t d, uint16_t* out) {
  __m512 sums[kQueries][kVectors];
  for (auto& of_query : sums) {
    for (__m512& sum : of_query) sum = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < length; ++i) {
    const uint16_t* const value = values.data + i * values.stride + d;
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (j % 2 == 0) prefetch_ahead(value + j * kLanes);
      const __m512 part = load(value + j * kLanes, kAll);
#pragma GCC unroll 2
      for (int q = 0; q < kQueries; ++q) {
        sums[q][j] = _mm512_fmadd_ps(_mm512_set1_ps(scores[q * length + i]), part, sums[q][j]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int j = 0; j < kVectors; ++j) {
      store(out + q * dim + d + j * kLanes, kAll, _mm512_mul_ps(sums[q][j], _mm512_set1_ps(inverse[q])));
    }
  }
}

template <int kQueries>
void attend(const uint16_t* queries, const HeadRows<uint16_t>& keys, const HeadRows<uint16_t>& values, int64_t length,
            int64_t dim, float scale, float* scores, uint16_t* out) {
  constexpr int kMost = 8;  // vectors of a head of 128 dimensions
  score<kQueries>(queries, keys, length, dim, scale, scores);
  float inverse[kQueries];
  for (int q = 0; q < kQueries; ++q) inverse[q] = exponentiate(scores + q * length, length);
  int64_t d = 0;
  for (; d + kMost * kLanes <= dim; d += kMost * kLanes) {
    mix<kQueries, kMost>(scores, inverse, values, length, dim, d, out);
  }
  for (; d < dim; d += 2 * kLanes) mix<kQueries, 2>(scores, inverse, values, length, dim, d, out);
}

}  // namespace

void attend_avx512(const uint16_t* queries, int count, const HeadRows<uint16_t>& keys,
                   const HeadRows<uint16_t>& values, int64_t length, int64_t dim, float scale, float* scores,
                   uint16_t* out) {
  for (int q = 0; q < count; q += kAttendQueries) {
    const auto few = count - q >= kAttendQueries ? attend<kAttendQueries> : attend<1>;
    few(queries + q * dim, keys, values, length, dim, scale, scores, out + q * dim);
  }
}

}  // namespace carillon::kernels
