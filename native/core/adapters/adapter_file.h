#pragma once
#include <string>
#include <vector>

#include "core/adapters/adapter.h"

namespace carillon {

/// Reads an adapter for a DiT with these projections: LoRA as PEFT, ComfyUI and diffusers write it, LoKr as LyCORIS
/// writes it, both with or without DoRA. `path` is a .safetensors file, alone or with its adapter_config.json beside it;
/// or a folder that holds a PEFT adapter, itself or in `adapter/`, or lokr_weights.safetensors, or one other
/// .safetensors file, or of several one with lokr_config in its metadata. Ranks come from the shapes of tensors.
/// `dora_epsilon` is for the magnitudes of LyCORIS, of either kind. Throws kBadCheckpoint naming file and tensor for a
/// damaged adapter, one of another model, and one that is of neither kind, or what was looked for where none is.
Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets,
                     double dora_epsilon = kLokrNormEpsilon);

}  // namespace carillon
