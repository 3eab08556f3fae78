#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"

namespace carillon {

/// The name of a tensor in an adapter file, taken apart.
struct AdapterTensorName {
  std::string module;  // as the file spells it
  std::string part;    // lora_A, lora_B, magnitude, alpha, dora_scale, lokr_w1, lokr_w1_a, ...; one word per meaning
};

/// nullopt for a tensor that is no part of an adapter. Endings `.weight`, `.NAME` and `.NAME.weight` (NAME is the
/// adapter's) are all the same, and so are lora_A and lora_down, lora_B and lora_up.
std::optional<AdapterTensorName> parse_adapter_tensor(const std::string& name);

/// Finds the projection that a module name of an adapter file means, whoever wrote it: PEFT, ComfyUI, diffusers,
/// LyCORIS, or a name without any prefix (reference engine.md 12.2 and 12.3).
class ProjectionIndex {
 public:
  explicit ProjectionIndex(const std::vector<AdapterTarget>& targets);

  /// nullptr where there is none.
  const AdapterTarget* find(const std::string& module) const;

 private:
  std::map<std::string, AdapterTarget> by_flat_name_;
};

}  // namespace carillon
