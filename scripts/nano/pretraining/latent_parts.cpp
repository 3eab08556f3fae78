#include "pretraining/latent_parts.h"

#include <algorithm>

#include "pretraining/pitch_classes.h"

namespace carillon::pretraining {

LatentParts LatentParts::of(int64_t latent_channels) {
  constexpr int64_t kMostBeats = 4, kMostTimbre = 28;
  const int64_t beats = std::min(kMostBeats, latent_channels / 16);
  const int64_t structure = std::min(kMostTimbre + kPitchClasses, latent_channels / 2);
  const int64_t timbre = std::min(kMostTimbre, structure);
  return {latent_channels - beats - structure, beats, timbre, structure - timbre};
}

}  // namespace carillon::pretraining
