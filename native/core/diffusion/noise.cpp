#include "core/diffusion/noise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>

#include "core/runtime/device.h"
#include "core/runtime/error.h"
#include "core/runtime/philox.h"

// This file uses no libm function except sqrt, because the last bits of the others differ between machines. For the
// same reason this library is compiled without contraction (fused a * b + c).

namespace carillon {
namespace {

/// The block that torch's CUDA generator draws for a subsequence, such as a thread, at an offset.
std::array<uint32_t, 4> block(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  const auto [offset_low, offset_high] = words_of(offset);
  const auto [subsequence_low, subsequence_high] = words_of(subsequence);
  return philox({offset_low, offset_high, subsequence_low, subsequence_high}, seed);
}

/// ln(u) for a normal float u in (0, 1]. Scales the mantissa m to [1 / sqrt(2), sqrt(2)) and uses
/// ln(m) = 2 * atanh((m - 1) / (m + 1)).
double natural_log(float u) {
  constexpr double kLn2 = 0.6931471805599453, kRootHalf = 0.7071067811865476;
  int exponent;
  double mantissa = std::frexp(static_cast<double>(u), &exponent);
  if (mantissa < kRootHalf) {
    mantissa *= 2.0;
    --exponent;
  }
  const double ratio = (mantissa - 1.0) / (mantissa + 1.0), square = ratio * ratio;
  double series = 0.0;
  for (int odd = 19; odd >= 1; odd -= 2) series = series * square + 1.0 / odd;
  return exponent * kLn2 + 2.0 * ratio * series;
}

/// sin(v) for 0 <= v <= 2 * pi * (1 + 1e-7). Subtracts the nearest multiple of pi / 2 from v, and uses the Taylor
/// series for the remainder.
double sine(float v) {
  constexpr double kHalfPi = 1.5707963267341256, kHalfPiRest = 6.077100506506192e-11, kPerHalfPi = 0.6366197723675814;
  const int quarter = static_cast<int>(v * kPerHalfPi + 0.5);
  const double r = (v - quarter * kHalfPi) - quarter * kHalfPiRest, square = r * r;
  const bool is_cosine = quarter % 2 == 1;
  double series = 1.0;
  for (int n = is_cosine ? 18 : 19; n > 1; n -= 2) series = 1.0 - series * square / (n * (n - 1));
  const double value = is_cosine ? series : r * series;
  return quarter % 4 < 2 ? value : -value;
}

/// First of the two normal numbers that cuRAND's Box-Muller transform makes from two random words. Uses the same
/// float32 operations as cuRAND.
float normal_of(uint32_t x, uint32_t y) {
  constexpr float kInverse = 2.3283064e-10f;           // 2^-32
  constexpr float kTurn = kInverse * 6.2831855f;       // 2 pi 2^-32
  const float u = static_cast<float>(x) * kInverse + kInverse / 2;
  const float v = static_cast<float>(y) * kTurn + kTurn / 2;
  const float radius = std::sqrt(-2.0f * static_cast<float>(natural_log(u)));
  return radius * static_cast<float>(sine(v));
}

}  // namespace

at::Tensor PhiloxStream::normal(at::IntArrayRef shape) {
  constexpr int64_t kGrain = 4096;
  at::Tensor numbers = at::empty(shape, at::kFloat);
  float* const out = numbers.mutable_data_ptr<float>();
  at::parallel_for(0, numbers.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const auto words = block(seed_, static_cast<uint64_t>(k), draws_);
      out[k] = normal_of(words[0], words[1]);
    }
  });
  ++draws_;
  return numbers;
}

double PhiloxStream::uniform() { return (block(seed_, 0, draws_++)[0] + 0.5) / 4294967296.0; }

NoiseStreams::NoiseStreams(const std::vector<uint64_t>& seeds) : streams_(seeds.begin(), seeds.end()) {
  require(!seeds.empty(), "a batch needs at least one seed");
}

at::Tensor NoiseStreams::next(int64_t frames, int64_t channels, at::Device device) {
  std::vector<at::Tensor> items;
  for (PhiloxStream& stream : streams_) items.push_back(stream.normal({1, frames, channels}));
  return upload(at::cat(items), device);
}

}  // namespace carillon
