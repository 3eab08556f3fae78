#pragma once
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/adapters/delta.h"

namespace carillon {

/// Reads the adapter at `path` (see locate_adapter) for a DiT with these projections: LoRA as PEFT, ComfyUI and
/// diffusers write it, LoKr as LyCORIS writes it, both with or without DoRA (reference engine.md 12, training.md 8.7).
/// Ranks come from the shapes of tensors. `dora_epsilon` is for the magnitudes of LyCORIS, of either kind. Throws
/// kBadCheckpoint naming file and tensor for a damaged adapter, one of another model, and one that is of neither kind.
Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets,
                     double dora_epsilon = kLokrNormEpsilon);

}  // namespace carillon
