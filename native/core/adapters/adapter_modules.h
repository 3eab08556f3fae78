#pragma once
#include "core/adapters/adapter.h"
#include "core/adapters/adapter_config.h"
#include "core/adapters/adapter_tensors.h"

namespace carillon {

/// Reads the change of one projection from the tensors of a module. `dora_epsilon` is the norm epsilon of LyCORIS's
/// DoRA. Throws kBadCheckpoint naming file and tensor.
AdapterModule read_module(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                          double dora_epsilon);

}  // namespace carillon
