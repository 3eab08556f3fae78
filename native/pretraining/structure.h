#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/config.h"

namespace carillon::pretraining {

inline constexpr int64_t kPitchClasses = 12;

/// What the latent channels are, in this order. Waves are close to coefficients of a cosine transform, whose signs no
/// words can tell; beats are the clock of beats.h; structure says what sounds and not how its waves run.
struct LatentParts {
  int64_t waves, beats, structure;

  /// Of the channels, beats are a sixteenth and structure is a quarter; at most 4 and 16.
  static LatentParts of(int64_t latent_channels);
  static LatentParts of(const VaeConfig& config) { return of(config.decoder_input_channels); }

  int64_t first_of_structure() const { return waves + beats; }
};

/// What the channels of structure say: log amplitude in four wide bands, then in the twelve pitch classes from A on, of
/// both channels' mean around every latent frame. Loudness, which moves all pitch classes together, is mostly taken out
/// of them: what is left is harmony. Deviations are about 2 over the data set, twice those of the waves: eight steps of
/// a sampler keep what is large, and decide on it first.
class Structure {
 public:
  Structure(const VaeConfig& config, at::Device device);

  /// audio [B, 2, frames * hop] -> [B, channels of structure, frames].
  at::Tensor operator()(const at::Tensor& audio) const;

 private:
  struct Part {
    int64_t window;
    at::Tensor hann;     // [window]
    at::Tensor filters;  // [rows, window / 2 + 1] of 0 and 1
  };
  at::Tensor log_amplitudes(const Part& part, const at::Tensor& middle, int64_t frames) const;

  int64_t channels_, hop_;
  Part bands_, pitches_;
};

/// About the latents [T, C] of a mix without one of its tracks, from those of mix, track and silence: the encoder is
/// nearly linear in the waves, and energies add up.
at::Tensor without(const at::Tensor& mix, const at::Tensor& track, const at::Tensor& silence);

}  // namespace carillon::pretraining
