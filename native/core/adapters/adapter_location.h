#pragma once
#include <optional>
#include <string>

namespace carillon {

/// Where the parts of an adapter lie.
struct AdapterLocation {
  std::string weights;                // a .safetensors file
  std::optional<std::string> config;  // PEFT's adapter_config.json
};

/// Finds an adapter: a .safetensors file, alone or with its adapter_config.json beside it; or a folder that holds a
/// PEFT adapter, itself or in `adapter/`, or lokr_weights.safetensors, or one other .safetensors file, or of several
/// one with lokr_config in its metadata. Throws kBadCheckpoint naming what was looked for.
AdapterLocation locate_adapter(const std::string& path);

}  // namespace carillon
