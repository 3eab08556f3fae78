#pragma once
#include <map>
#include <optional>
#include <string>

namespace carillon {

/// PEFT's adapter_config.json: kind and scale of an adapter.
struct PeftConfig {
  std::optional<double> alpha;
  std::map<std::string, double> alpha_pattern;  // by suffix of the module name
  bool is_rank_stabilized = false;              // scale = alpha / sqrt(rank) instead of alpha / rank
  bool uses_dora = false;

  /// Throws kBadCheckpoint for a missing or damaged file and for an unsupported kind of adapter.
  static PeftConfig read(const std::string& path);

  /// Alpha of `module` (its name without the prefix of tensor names). Reads alpha_pattern first, then the common alpha;
  /// nullopt if neither is set.
  std::optional<double> alpha_of(const std::string& module) const;
};

}  // namespace carillon
