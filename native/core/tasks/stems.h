#pragma once
#include "core/tasks/context.h"

namespace carillon {

/// lego, extract and complete hear the recording [1, T, C] as it is, also inside a window: which stem to make, take
/// out or complete the text prompt says. `chunk_mask` [1, T] float.
ContextInputs stems_source(const at::Tensor& latents, const at::Tensor& chunk_mask);

}  // namespace carillon
