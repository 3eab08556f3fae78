// Attention of one position over a float32 cache.
#include "kernels/simd_float.h"

namespace carillon::kernels {
namespace {

constexpr int kVectors = 8, kStep = kVectors * kLanes;  // dimensions of a head that are summed in registers

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

/// Products of the query with `count` <= kLanes keys, one per lane.
inline Vector dots(const float* query, const HeadRows<float>& keys, int64_t first, int64_t count, int64_t dim) {
  const float* rows[kLanes];
  Vector sums[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    rows[i] = keys.data + (first + (i < count ? i : 0)) * keys.stride;
    prefetch_ahead(rows[i]);
  }
  for (int64_t d = 0; d < dim; d += kLanes) {
    const Vector q = load(query + d);
#pragma GCC unroll 8
    for (int i = 0; i < kLanes; ++i) sums[i] += q * load(rows[i] + d);
  }
  const Vector low = add_pairs(add_pairs(sums[0], sums[1]), add_pairs(sums[2], sums[3]));
  const Vector high = add_pairs(add_pairs(sums[4], sums[5]), add_pairs(sums[6], sums[7]));
  return add_pairs(low, high);
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

/// Dimensions d .. d + kCount * kLanes - 1 of the result.
template <int kCount>
void mix(const float* weights, float inverse, const HeadRows<float>& values, int64_t length, int64_t d, float* out) {
  Vector sums[kCount] = {};
  for (int64_t i = 0; i < length; ++i) {
    const float* const value = values.data + i * values.stride + d;
    prefetch_ahead(value);
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) sums[j] += weights[i] * load(value + j * kLanes);
  }
  for (int j = 0; j < kCount; ++j) store(out + d + j * kLanes, sums[j] * inverse);
}

}  // namespace

void attend_float(const float* query, const HeadRows<float>& keys, const HeadRows<float>& values, int64_t length,
                  int64_t dim, float scale, float* scores, float* out) {
  for (int64_t first = 0; first < length; first += kLanes) {
    const int64_t count = length - first < kLanes ? length - first : kLanes;
    const Vector products = scale * dots(query, keys, first, count, dim);
    if (count == kLanes) {
      store(scores + first, products);
    } else {
      std::memcpy(scores + first, &products, static_cast<size_t>(count) * sizeof(float));
    }
  }
  const float inverse = 1.0f / exponentiate(scores, length);
  int64_t d = 0;
  for (; d + kStep <= dim; d += kStep) mix<kVectors>(scores, inverse, values, length, d, out);
  if (d < dim) mix<kVectors / 2>(scores, inverse, values, length, d, out);
}

}  // namespace carillon::kernels
