#include "core/dit/embedding.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon {

namespace {

constexpr int64_t kModulations = 6;

/// [B, T, C] -> [B, ceil(T / patch), patch * C]: row k holds frames k * patch, k * patch + 1, ...
at::Tensor patches(const at::Tensor& x, int64_t patch) {
  const int64_t tokens = (x.size(1) + patch - 1) / patch, missing = tokens * patch - x.size(1);
  const at::Tensor whole = missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, missing});
  return whole.reshape({x.size(0), tokens, patch * x.size(2)});
}

}  // namespace

PatchEmbedding PatchEmbedding::load(const Weights& weights, const DitConfig& config) {
  const int64_t hidden = config.hidden_size, channels = config.in_channels, patch = config.patch_size;
  const int64_t latent = config.audio_acoustic_hidden_dim;
  const at::Tensor by_frame = weights.get("weight", {hidden, channels, patch}).permute({0, 2, 1});
  const auto part = [&](int64_t first, int64_t count) {
    return by_frame.narrow(2, first, count).reshape({hidden, patch * count}).contiguous();
  };
  return {patch,
          {{part(0, channels - latent)}, weights.get("bias", {hidden})},
          {{part(channels - latent, latent)}, at::Tensor()}};
}

at::Tensor PatchEmbedding::embed_context(const at::Tensor& x) const { return context(patches(x, patch_size)); }

at::Tensor PatchEmbedding::embed_state(const at::Tensor& x) const { return state(patches(x, patch_size)); }

PatchOutput PatchOutput::load(const Weights& weights, const DitConfig& config) {
  const int64_t hidden = config.hidden_size, latent = config.audio_acoustic_hidden_dim, patch = config.patch_size;
  const at::Tensor weight = weights.get("weight", {hidden, latent, patch}).permute({2, 1, 0});
  const at::Tensor bias = weights.get("bias", {latent}).repeat({patch});
  return {patch, {{weight.reshape({patch * latent, hidden}).contiguous()}, bias}};
}

at::Tensor PatchOutput::operator()(const at::Tensor& x, int64_t frames) const {
  const at::Tensor rows = projection(x);
  return rows.reshape({x.size(0), x.size(1) * patch_size, -1}).narrow(1, 0, frames);
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
  const at::Tensor waves = sinusoid(times, linear_1.inputs()).to(linear_1.bias.scalar_type());
  const at::Tensor embedding = linear_2(at::silu(linear_1(waves)));
  const at::Tensor modulation = time_proj(at::silu(embedding));
  return {embedding, modulation.reshape({times.size(0), kModulations, -1})};
}

}  // namespace carillon
