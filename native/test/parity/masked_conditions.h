#pragma once
#include <ATen/core/Tensor.h>

#include "core/dit/condition_encoder.h"
#include "core/tasks/task_inputs.h"

namespace carillon::parity {

/// Conditions of a padded batch. The reference implementation encodes padded batches; Carillon encodes each song
/// without padding. Masks are true for real tokens.
struct MaskedConditions {
  at::Tensor text_hidden_states;  // [B, Lt, text width]
  at::Tensor text_mask;           // [B, Lt]
  at::Tensor lyric_embeddings;    // [B, Ll, text width]
  at::Tensor lyric_mask;          // [B, Ll]
  at::Tensor timbre_latents;      // [R, frames, channels], all reference clips of the batch
  at::Tensor timbre_items;        // [R] int64, the batch item of each clip, non-decreasing
};

/// Encodes lyrics [B, Ll, text width] to [B, Ll, E]. Masked positions have an output, but no position attends to them.
at::Tensor encode_lyrics(const ConditionEncoder& encoder, const at::Tensor& embeddings, const at::Tensor& mask);

/// Encodes each reference clip into one state. Returns the states of each item: [B, largest clip count, E]. Items with
/// fewer clips are padded with zeros.
PaddedStates encode_timbre(const ConditionEncoder& encoder, const at::Tensor& latents, const at::Tensor& items);

/// Encodes all conditions of each item: lyrics, then reference clips, then text. Moves the padding to the end.
PaddedStates encode(const ConditionEncoder& encoder, const MaskedConditions& conditions);

}  // namespace carillon::parity
