#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/runtime/control.h"

namespace carillon {

/// Encoder of carillon-nano. It computes latents by formulas instead of a trained network: loudness of semitones, bands
/// and pitch classes around every frame, as in scripts/nano/training/latent_space.py. A checkpoint stores only the mean
/// and components of timbre.
class SpectralEncoder {
 public:
  /// Reads `timbre_mean` and `timbre_components`. Throws kBadCheckpoint.
  static SpectralEncoder load(const Weights& weights, const VaeConfig& config);

  /// Encodes audio [B, audio_channels, samples], on any device, to float32 latents [B, C, whole frames] on the CPU. The
  /// clock channels are 0. Reports Stage::kConditions for every group of frames.
  at::Tensor encode(const at::Tensor& audio, const Control& control) const;

 private:
  /// Returns latents [count, C]: `count` frames, starting at frame `first`. `signal` has `margin_` extra samples at
  /// each end.
  at::Tensor encode_frames(const at::Tensor& signal, int64_t first, int64_t count) const;
  at::Tensor semitones(const at::Tensor& windows) const;
  at::Tensor timbre(const at::Tensor& signal, int64_t first, int64_t count) const;
  at::Tensor pitch_classes(const at::Tensor& signal, int64_t first, int64_t count) const;

  VaeConfig config_;
  int64_t hop_, reach_, margin_;
  at::Tensor low_mean_, low_deviation_;         // [semitones]
  at::Tensor cosine_, sine_;                    // windowed waves of semitones, [2 reach + 1, semitones]
  at::Tensor response_;                         // [i, j]: energy that semitone j of amplitude 1 has in window i
  at::Tensor mel_filters_, pitch_filters_;      // [bins, bands], [bins, classes]
  at::Tensor timbre_mean_, timbre_components_;  // [rows], [channels, rows]
};

}  // namespace carillon
