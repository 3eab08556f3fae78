#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/linear.h"

namespace carillon {

/// Latent frames to DiT tokens. The checkpoint's strided convolution over [context | state] channels, as two linear
/// maps over the patch: a token is embed_context + embed_state, and the context stays the same over all steps.
/// A length that is no multiple of the patch is completed with zero frames.
struct PatchEmbedding {
  int64_t patch_size = 0;
  nn::Linear context;  // [H, patch * context channels], with bias
  nn::Linear state;    // [H, patch * latent channels], without

  /// Reads the convolution's `weight` [H, in_channels, patch] and `bias`.
  static PatchEmbedding load(const Weights& weights, const DitConfig& config);

  /// [B, T, context channels] -> [B, ceil(T / patch), H].
  at::Tensor embed_context(const at::Tensor& x) const;
  /// [B, T, latent channels] -> [B, ceil(T / patch), H].
  at::Tensor embed_state(const at::Tensor& x) const;
};

/// DiT tokens back to latent frames: the checkpoint's transposed convolution as one linear map.
struct PatchOutput {
  int64_t patch_size = 0;
  nn::Linear projection;  // [patch * latent channels, H]

  /// Reads the transposed convolution's `weight` [H, latent channels, patch] and `bias`.
  static PatchOutput load(const Weights& weights, const DitConfig& config);

  /// [B, S, H] -> [B, frames, latent channels], frames <= S * patch.
  at::Tensor operator()(const at::Tensor& x, int64_t frames) const;
};

}  // namespace carillon
