#include "core/dit/patch.h"

#include <ATen/ATen.h>

namespace carillon {
namespace {

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
  return {patch, {part(0, channels - latent), weights.get("bias", {hidden})}, {part(channels - latent, latent), {}}};
}

at::Tensor PatchEmbedding::embed_context(const at::Tensor& x) const { return context(patches(x, patch_size)); }

at::Tensor PatchEmbedding::embed_state(const at::Tensor& x) const { return state(patches(x, patch_size)); }

PatchOutput PatchOutput::load(const Weights& weights, const DitConfig& config) {
  const int64_t hidden = config.hidden_size, latent = config.audio_acoustic_hidden_dim, patch = config.patch_size;
  const at::Tensor weight = weights.get("weight", {hidden, latent, patch}).permute({2, 1, 0});
  const at::Tensor bias = weights.get("bias", {latent}).repeat({patch});
  return {patch, {weight.reshape({patch * latent, hidden}).contiguous(), bias}};
}

at::Tensor PatchOutput::operator()(const at::Tensor& x, int64_t frames) const {
  const at::Tensor rows = projection(x);
  return rows.reshape({x.size(0), x.size(1) * patch_size, -1}).narrow(1, 0, frames);
}

}  // namespace carillon
