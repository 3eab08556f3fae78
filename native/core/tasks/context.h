#pragma once
#include <ATen/core/Tensor.h>

#include "core/dit/ace_step.h"

namespace carillon {

/// What the DiT reads beside its state.
struct ContextInputs {
  at::Tensor source;      // [B, T, C]: silence, the latents of the source audio, or those of given audio codes
  at::Tensor chunk_mask;  // [B, T, C]: 1 where to generate, 0 where to keep
  at::Tensor is_cover;    // [B] bool: these items read the source through its audio codes
  at::Tensor hints;       // [B, at least T, C]: latents of given audio codes; undefined to take the source's own
};

/// Frames that are rendered for a song of `frames`: at least 128, as the model knows no shorter songs, or the whole
/// silence table where that is shorter.
int64_t rendered_frames(const AceStep& model, int64_t frames);

/// The context [B, T, 2C], in the model's dtype: source or hints, then the chunk mask.
at::Tensor make_context(const AceStep& model, const ContextInputs& inputs);

}  // namespace carillon
