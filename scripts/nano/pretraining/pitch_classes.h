#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/config.h"

namespace carillon::pretraining {

inline constexpr int64_t kPitchClasses = 12;

/// Log amplitudes of the twelve pitch classes from A on, around every latent frame. Loudness, which moves all of them
/// together, is mostly taken out: what is left is harmony. Deviations are about 2 over the data set, twice those of the
/// waves: eight steps of a sampler keep what is large, and decide on it first.
class PitchClasses {
 public:
  PitchClasses(const VaeConfig& config, at::Device device);

  /// middle [B, frames * hop], of both channels -> [B, kPitchClasses, frames].
  at::Tensor operator()(const at::Tensor& middle) const;

 private:
  int64_t hop_;
  at::Tensor hann_, filters_;  // [window], [kPitchClasses, window / 2 + 1] of 0 and 1
};

}  // namespace carillon::pretraining
