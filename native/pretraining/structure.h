#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/config.h"

namespace carillon::pretraining {

/// Latent channels that say what sounds and not how its waves run: the last quarter, at most 16. The others are close
/// to coefficients of a cosine transform, whose signs no words can tell.
int64_t structure_channels(const VaeConfig& config);
int64_t structure_channels(int64_t latent_channels);

/// What those channels say: log amplitude in four wide bands, then in the twelve pitch classes from A on, of both
/// channels' mean around every latent frame, about unit scale over the data set.
class Structure {
 public:
  Structure(const VaeConfig& config, at::Device device);

  /// audio [B, 2, frames * hop] -> [B, structure_channels, frames].
  at::Tensor operator()(const at::Tensor& audio) const;

 private:
  struct Part {
    int64_t window;
    at::Tensor hann;     // [window]
    at::Tensor filters;  // [rows, window / 2 + 1] of 0 and 1
    double centre, spread;  // of its log amplitudes
  };
  at::Tensor part(const Part& part, const at::Tensor& middle, int64_t frames) const;

  int64_t channels_, hop_;
  Part bands_, pitches_;
};

/// What a mean structure [B, rows] says of a song: the loudness of its bands, and of its pitch classes against one
/// another, which is its key. Of about unit scale, for keys differ by little beside loud and quiet.
at::Tensor character(const at::Tensor& mean_structure);

/// About the latents [T, C] of a mix without one of its tracks, from those of mix, track and silence: the encoder is
/// nearly linear in the waves, and energies add up.
at::Tensor without(const at::Tensor& mix, const at::Tensor& track, const at::Tensor& silence);

}  // namespace carillon::pretraining
