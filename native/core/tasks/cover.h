#pragma once
#include "core/tasks/context.h"

namespace carillon {

/// A recording [1, T, C] to be heard through its audio codes: the tune stays, the sound is new.
ContextInputs cover_source(const at::Tensor& latents);

}  // namespace carillon
