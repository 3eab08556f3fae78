#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/layers.h"

namespace carillon {

/// Converts latent frames to DiT tokens, one per patch of frames. Two linear layers replace the checkpoint's strided
/// convolution over [context | state] channels: a token is embed_context + embed_state. Only embed_state changes
/// between steps. Zero frames fill up the last patch.
struct PatchEmbedding {
  int64_t patch_size = 0;
  nn::Linear context;  // [H, patch * context channels], with bias
  nn::Linear state;    // [H, patch * latent channels], without bias

  /// Reads the convolution's `weight` [H, in_channels, patch] and `bias`.
  static PatchEmbedding load(const Weights& weights, const DitConfig& config);

  /// [B, T, context channels] -> [B, ceil(T / patch), H].
  at::Tensor embed_context(const at::Tensor& x) const;
  /// [B, T, latent channels] -> [B, ceil(T / patch), H].
  at::Tensor embed_state(const at::Tensor& x) const;
};

/// Converts DiT tokens back to latent frames. One linear map replaces the checkpoint's transposed convolution.
struct PatchOutput {
  int64_t patch_size = 0;
  nn::Linear projection;  // [patch * latent channels, H]

  /// Reads the transposed convolution's `weight` [H, latent channels, patch] and `bias`.
  static PatchOutput load(const Weights& weights, const DitConfig& config);

  /// [B, S, H] -> [B, frames, latent channels], frames <= S * patch.
  at::Tensor operator()(const at::Tensor& x, int64_t frames) const;
};

/// Embeds a flow time as a vector and as the six modulations of a DiT layer.
struct TimeEmbedding {
  nn::Linear linear_1, linear_2, time_proj;

  struct Output {
    at::Tensor embedding;   // [N, H]
    at::Tensor modulation;  // [N, 6, H]
  };

  /// Reads `linear_1`, `linear_2`, `time_proj`.
  static TimeEmbedding load(const Weights& weights, int64_t hidden_size);

  /// times [N] float32 in [0, 1]. The sinusoid is computed in float32, then cast.
  Output operator()(const at::Tensor& times) const;
};

/// times [N] float32 -> [N, width] float32: cos(1000 * t * f_i), then sin(1000 * t * f_i), with f_i = 10000^(-2 * i /
/// width).
at::Tensor sinusoid(const at::Tensor& times, int64_t width);

}  // namespace carillon
