#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/config.h"
#include "pretraining/latent_parts.h"
#include "pretraining/pieces.h"
#include "pretraining/pitch_classes.h"
#include "pretraining/timbre.h"

namespace carillon::pretraining {

/// What latents are to say of audio, exactly. It is not learnt: the encoder learns to say it, the decoder to play it,
/// and all other models learn from it. Only scales and the components of timbre are measured of the data set.
class LatentSpace {
 public:
  static LatentSpace measure(const VaeConfig& config, const std::vector<Piece>& pieces);
  /// Throws kBadCheckpoint, also for one that was measured for another autoencoder.
  static LatentSpace load(const VaeConfig& config, const std::string& path);
  void save(const std::string& path) const;

  /// audio [B, 2, frames * hop] -> [B, C, frames] on the CPU; the clock's channels are 0.
  at::Tensor operator()(const at::Tensor& audio) const;

  int64_t hop() const { return config_.samples_per_frame(); }
  /// Of the coefficients of the lapped transform that are the waves, [waves].
  const at::Tensor& wave_deviations() const { return scales_.waves; }
  /// Of the bands that the encoder's exact blocks give, [exact_bands].
  const at::Tensor& band_deviations() const { return scales_.bands; }

 private:
  struct Scales {
    at::Tensor waves, bands;
  };
  LatentSpace(const VaeConfig& config, Scales scales, Timbre timbre);

  VaeConfig config_;
  at::Tensor wave_filters_;
  Scales scales_;
  LogMel log_mel_;
  Timbre timbre_;
  PitchClasses pitch_classes_;
};

}  // namespace carillon::pretraining
