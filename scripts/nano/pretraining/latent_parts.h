#pragma once
#include <cstdint>

#include "core/checkpoint/config.h"

namespace carillon::pretraining {

/// What the latent channels are, in this order. Waves (lapped_transform.h) are the low tones themselves, as
/// coefficients of a cosine transform, whose signs no words can tell. Beats are the clock of beats.h. Timbre (timbre.h)
/// and pitches (pitch_classes.h) are the structure: what sounds, and not how its waves run.
struct LatentParts {
  int64_t waves, beats, timbre, pitches;

  /// Structure is half of the channels, beats a sixteenth, up to 40 and 4. Of the structure, up to 28 are timbre.
  static LatentParts of(int64_t latent_channels);
  static LatentParts of(const VaeConfig& config) { return of(config.decoder_input_channels); }

  int64_t structure() const { return timbre + pitches; }
  int64_t first_of_structure() const { return waves + beats; }
};

}  // namespace carillon::pretraining
