#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "pretraining/stage.h"

namespace carillon::pretraining {

/// Learns to tell spectra of decoded audio from those of played audio, patch by patch, and so shows the decoder what
/// its spectra lack: errors of value or of texture do not ask that details go together as they do in music.
/// Convolutions over log magnitudes of middle and side at two resolutions (after Kumar et al., 2023), judged by least
/// squares (Mao et al., 2017). Its weights are leaves beside the decoder's, learn in the same steps and are not
/// exported.
class Discriminator {
 public:
  explicit Discriminator(at::Device device);

  /// What the decoder and the discriminator minimise together, of audio [B, 2, samples] each, at least 2048 samples.
  /// No gradient of the decoder's parts reaches the discriminator's weights, and none of its own part reaches `made`.
  /// Parts: `passing`, how far `made` is from passing for played, and `features`, how far the discriminator's features
  /// of it are from those of `real`; `judging`, its own squared error, 0.5 where it cannot tell.
  Loss loss(const Weights& weights, const at::Tensor& made, const at::Tensor& real) const;

 private:
  std::vector<at::Tensor> hann_;  // a window for each resolution
};

}  // namespace carillon::pretraining
