#pragma once
#include <optional>

#include "core/adapters/adapter.h"
#include "core/adapters/adapter_tensors.h"
#include "core/adapters/peft_config.h"

namespace carillon {

/// Settings of an adapter file that apply to all of its modules.
struct AdapterScales {
  PeftConfig peft;
  std::optional<double> lokr_alpha;  // for modules without an alpha of their own
  double dora_epsilon;               // added to the norms of LyCORIS's DoRA
};

/// Builds the change of one projection from the tensors of its module. Throws kBadCheckpoint naming file and tensor.
AdapterModule read_module(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterScales& scales);

}  // namespace carillon
