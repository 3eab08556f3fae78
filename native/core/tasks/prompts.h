#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/dit/ace_step.h"
#include "core/qwen3/text_encoder.h"

namespace carillon {

/// The prompts of one song as the text encoder reads them.
struct PromptStates {
  at::Tensor text;    // [1, Lt, text width], hidden states
  at::Tensor lyrics;  // [1, Ll, text width], embeddings
};

/// Throws kBadArgument for a token id outside the vocabulary.
PromptStates read_prompts(const TextEncoder& text_encoder, const std::vector<int32_t>& text_token_ids,
                          const std::vector<int32_t>& lyric_token_ids);

/// What the DiT attends to, [1, L, E]: lyrics, timbre and text. `timbre_latents` [1, frames, C] of any type and
/// device; undefined: those of silence, which stand for no reference at all.
PackedStates encode_conditions(const AceStep& model, const PromptStates& prompts, const at::Tensor& timbre_latents);

}  // namespace carillon
