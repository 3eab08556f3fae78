#include "core/dit/time_embedding.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon {

namespace {
constexpr int64_t kModulations = 6;
}

at::Tensor sinusoid(const at::Tensor& times, int64_t width) {
  constexpr double kTimeScale = 1000.0, kMaxPeriod = 10000.0;
  const int64_t half = width / 2;
  const at::Tensor frequencies = (at::arange(half, times.options()) * (-std::log(kMaxPeriod) / half)).exp();
  const at::Tensor angles = (times * kTimeScale).unsqueeze(1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, 1);
}

TimeEmbedding TimeEmbedding::load(const Weights& weights, int64_t hidden_size) {
  const int64_t width = weights.shape("linear_1.weight").at(1);
  return {nn::Linear::load(weights.sub("linear_1"), width, hidden_size, true),
          nn::Linear::load(weights.sub("linear_2"), hidden_size, hidden_size, true),
          nn::Linear::load(weights.sub("time_proj"), hidden_size, kModulations * hidden_size, true)};
}

TimeEmbedding::Output TimeEmbedding::operator()(const at::Tensor& times) const {
  const at::Tensor waves = sinusoid(times, linear_1.weight.size(1)).to(linear_1.weight.scalar_type());
  const at::Tensor embedding = linear_2(at::silu(linear_1(waves)));
  const at::Tensor modulation = time_proj(at::silu(embedding));
  return {embedding, modulation.reshape({times.size(0), kModulations, -1})};
}

}  // namespace carillon
