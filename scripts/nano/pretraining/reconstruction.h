#pragma once
#include <functional>

#include "core/checkpoint/config.h"
#include "pretraining/spectral.h"
#include "pretraining/stage.h"

namespace carillon::pretraining {

/// latents [B, C, frames] -> audio [B, 2, samples].
at::Tensor decode(const Weights& weights, const VaeConfig& config, const at::Tensor& latents);

/// How far decoded audio is from what it was, for training and for reports.
class ReconstructionError {
 public:
  ReconstructionError(int64_t sample_rate, at::Device device)
      : sample_rate_(sample_rate), spectral_(sample_rate, device) {}

  /// Spectral distance of audio [B, 2, samples], and that of the waveforms of low tones.
  Loss loss(const at::Tensor& made, const at::Tensor& real) const;

  /// logMel: distance of the reconstructions that `reconstruct` makes of crops [N, 2, samples], one at a time;
  /// whiteNoise: that of white noise as loud as the music; ratio: the one over the other.
  Figures measure(const at::Tensor& crops, const std::function<at::Tensor(int64_t index)>& reconstruct) const;

 private:
  int64_t sample_rate_;
  SpectralLoss spectral_;
};

}  // namespace carillon::pretraining
