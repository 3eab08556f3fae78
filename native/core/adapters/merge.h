#pragma once
#include "core/adapters/adapter.h"
#include "core/checkpoint/checkpoint.h"
#include "core/dit/dit.h"

namespace carillon {

/// Gives every projection that `adapter` names its base weight, changed by the adapter at `strength`: computed in
/// float32 and rounded once to the weight's type. It starts from `decoder`, the weights that `dit` was loaded from,
/// whatever was merged before, so merging again at another strength needs no restoring. At strength 0 the base weights
/// are back, bit for bit.
void merge_adapter(Dit& dit, const Weights& decoder, const Adapter& adapter, double strength);

/// Puts back the base weights of every projection that `adapter` names, bit for bit.
void restore_base(Dit& dit, const Weights& decoder, const Adapter& adapter);

}  // namespace carillon
