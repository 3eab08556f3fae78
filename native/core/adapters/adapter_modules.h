#pragma once
#include <optional>

#include "core/adapters/adapter.h"
#include "core/adapters/adapter_tensors.h"
#include "core/adapters/peft_config.h"

namespace carillon {

/// Settings that apply to all modules of an adapter.
struct AdapterSettings {
  PeftConfig peft;
  std::optional<double> lokr_alpha;  // default alpha of LoKr modules
  double dora_epsilon;               // norm epsilon of LyCORIS's DoRA
};

/// Reads the change of one projection from the tensors of a module. Throws kBadCheckpoint naming file and tensor.
AdapterModule read_module(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterSettings& settings);

}  // namespace carillon
