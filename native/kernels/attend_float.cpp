// Attention of one position over a float32 cache. Two queries of a group read the cache together.
#include "kernels/simd_float.h"

namespace carillon::kernels {
namespace {

constexpr int64_t kCacheLine = 16;  // numbers

/// e^x for x <= 0 with a relative error below 1e-6; about 1e-38 below -87. NaN stays NaN.
inline Vector exp_negative(Vector x) {
  constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23: floats near it have no fraction bits
  const Vector lowest = all(-87.0f), clamped = lowest > x ? lowest : x;
  const Vector powers = (clamped * 1.44269504089f + kWhole) - kWhole;
  // r = clamped - powers * ln 2, with ln 2 in two parts to keep the low bits of r. Then p is the Taylor series of e^r.
  const Vector r = (clamped - powers * 0.693359375f) + powers * 2.12194440e-4f;
  constexpr float kCoefficients[] = {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  Vector p = all(1.0f / 720);
  for (const float coefficient : kCoefficients) p = p * r + coefficient;
  const Integers exponent = __builtin_convertvector(powers, Integers);
  return p * (Vector)((exponent + 127) << 23);
}

/// Sums of neighbours: four of a, then four of b.
inline Vector add_pairs(Vector a, Vector b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}

constexpr int kKeys = 4;

/// Products of the queries with kKeys keys, in the order of the keys: two parts of each sum.
template <int kQueries>
inline void dots(const float* queries, const float* const* keys, int64_t dim, Vector* out) {
  Vector sums[kQueries][kKeys] = {};
  for (int64_t d = 0; d < dim; d += kLanes) {
    Vector query[kQueries];
    for (int q = 0; q < kQueries; ++q) query[q] = load(queries + q * dim + d);
#pragma GCC unroll 4
    for (int i = 0; i < kKeys; ++i) {
      const Vector key = load(keys[i] + d);
#pragma GCC unroll 2
      for (int q = 0; q < kQueries; ++q) sums[q][i] += query[q] * key;
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    out[q] = add_pairs(add_pairs(sums[q][0], sums[q][1]), add_pairs(sums[q][2], sums[q][3]));
  }
}

/// Writes scale * query * key to scores [kQueries, length].
template <int kQueries>
void score(const float* queries, const HeadRows<float>& keys, int64_t length, int64_t dim, float scale, float* scores) {
  for (int64_t first = 0; first < length; first += kLanes) {
    const int64_t count = length - first < kLanes ? length - first : kLanes;
    const float* rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = keys.data + (first + (i < count ? i : 0)) * keys.stride;
      for (int64_t d = 0; d < dim; d += kCacheLine) prefetch_ahead(rows[i] + d);
    }
    Vector low[kQueries], high[kQueries];
    dots<kQueries>(queries, rows, dim, low);
    dots<kQueries>(queries, rows + kKeys, dim, high);
    for (int q = 0; q < kQueries; ++q) {
      const Vector products = scale * add_pairs(low[q], high[q]);
      std::memcpy(scores + q * length + first, &products, static_cast<size_t>(count) * sizeof(float));
    }
  }
}

/// Replaces each score by exp(score - highest score). Returns the sum of the exponentials.
float exponentiate(float* scores, int64_t length) {
  float highest = scores[0];
  for (int64_t i = 1; i < length; ++i) highest = scores[i] > highest ? scores[i] : highest;
  Vector total{};
  int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    const Vector e = exp_negative(load(scores + i) - highest);
    store(scores + i, e);
    total += e;
  }
  float rest = 0;
  for (; i < length; ++i) rest += scores[i] = exp_negative(all(scores[i] - highest))[0];
  return sum(total) + rest;
}

/// Adds the values, weighted by the scores, to out [kQueries, dim]. All dimensions of some values are read before the
/// next values, which come from memory.
template <int kQueries>
void mix(const float* scores, const HeadRows<float>& values, int64_t length, int64_t dim, float* out) {
  constexpr int kVectors = 4;
  constexpr int64_t kValues = 16;
  for (int64_t first = 0; first < length; first += kValues) {
    const int64_t end = first + kValues < length ? first + kValues : length;
    for (int64_t d = 0; d < dim; d += kVectors * kLanes) {
      Vector sums[kQueries][kVectors] = {};
      if (first > 0) {
        for (int q = 0; q < kQueries; ++q) {
          for (int j = 0; j < kVectors; ++j) sums[q][j] = load(out + q * dim + d + j * kLanes);
        }
      }
      for (int64_t i = first; i < end; ++i) {
        const float* const value = values.data + i * values.stride + d;
        for (int64_t line = 0; line < kVectors * kLanes; line += kCacheLine) prefetch_ahead(value + line);
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; ++j) {
          const Vector part = load(value + j * kLanes);
#pragma GCC unroll 2
          for (int q = 0; q < kQueries; ++q) sums[q][j] += scores[q * length + i] * part;
        }
      }
      for (int q = 0; q < kQueries; ++q) {
        for (int j = 0; j < kVectors; ++j) store(out + q * dim + d + j * kLanes, sums[q][j]);
      }
    }
  }
}

template <int kQueries>
void attend(const float* queries, const HeadRows<float>& keys, const HeadRows<float>& values, int64_t length,
            int64_t dim, float scale, float* scores, float* out) {
  score<kQueries>(queries, keys, length, dim, scale, scores);
  float inverse[kQueries];
  for (int q = 0; q < kQueries; ++q) inverse[q] = 1.0f / exponentiate(scores + q * length, length);
  mix<kQueries>(scores, values, length, dim, out);
  for (int q = 0; q < kQueries; ++q) {
    for (int64_t d = q * dim; d < (q + 1) * dim; d += kLanes) store(out + d, load(out + d) * inverse[q]);
  }
}

}  // namespace

void attend_float(const float* queries, int count, const HeadRows<float>& keys, const HeadRows<float>& values,
                  int64_t length, int64_t dim, float scale, float* scores, float* out) {
  for (int q = 0; q < count; q += kAttendQueries) {
    const auto few = count - q >= kAttendQueries ? attend<kAttendQueries> : attend<1>;
    few(queries + q * dim, keys, values, length, dim, scale, scores, out + q * dim);
  }
}

}  // namespace carillon::kernels
