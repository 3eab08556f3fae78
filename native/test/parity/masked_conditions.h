#pragma once
#include <ATen/core/Tensor.h>

#include "core/dit/condition_encoder.h"
#include "core/tasks/task_inputs.h"

namespace carillon::parity {

/// Conditions of a padded batch, as the reference encodes them. Render jobs encode songs without padding instead. Masks
/// are bool, true for real tokens.
struct MaskedConditions {
  at::Tensor text_hidden_states;  // [B, Lt, text width]
  at::Tensor text_mask;           // [B, Lt]
  at::Tensor lyric_embeddings;    // [B, Ll, text width]
  at::Tensor lyric_mask;          // [B, Ll]
  at::Tensor timbre_latents;      // [R, frames, channels], all reference clips of the batch
  at::Tensor timbre_items;        // [R] int64, the batch item of each clip, non-decreasing
};

/// Lyrics [B, Ll, text width] -> [B, Ll, E]. Masked positions are not attended to but have an output.
at::Tensor encode_lyrics(const ConditionEncoder& encoder, const at::Tensor& embeddings, const at::Tensor& mask);

/// One state per clip, grouped by item and padded with zeros: [B, most clips of an item, E].
PaddedStates encode_timbre(const ConditionEncoder& encoder, const at::Tensor& latents, const at::Tensor& items);

/// Lyrics, reference clips and text of each item, with padding moved to the end.
PaddedStates encode(const ConditionEncoder& encoder, const MaskedConditions& conditions);

}  // namespace carillon::parity
