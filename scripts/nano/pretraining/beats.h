#pragma once
#include <ATen/core/Tensor.h>

#include "pretraining/facts.h"

namespace carillon::pretraining {

/// Channels of the latents that are a clock (latent_parts.h): the hands of beat and bar as cosine and sine, for frames
/// from `first_frame` of a piece on; [frames, channels], at most four. No encoder hears them and no decoder reads them:
/// the DiT draws them first, as the plainest thing that a tempo means, and drums and chords then have a grid to follow.
at::Tensor beats(const Facts& facts, int64_t first_frame, int64_t frames, int64_t channels);

/// Tempo in bpm of a clock [frames, channels] with two channels or more: the mean advance of the hand of the beat.
double tempo_of(const at::Tensor& beats);

}  // namespace carillon::pretraining
