#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/config.h"

namespace carillon {

/// What the config's oscillators, a semitone apart from E1 (41.2 Hz) on, play of latents [B, C, T] on any device:
/// [B, 1, samples_per_frame * T], float32 on the CPU. Amplitudes run straight from the middle of one frame to that of the
/// next. A sample depends on its place in the whole song alone, so this is done once for all tiles.
at::Tensor play_oscillators(const at::Tensor& latents, const VaeConfig& config);

}  // namespace carillon
