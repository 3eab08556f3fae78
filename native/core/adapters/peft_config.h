#pragma once
#include <map>
#include <optional>
#include <string>

namespace carillon {

/// Content of PEFT's adapter_config.json: the kind and the scale of an adapter.
struct PeftConfig {
  std::optional<double> alpha;
  std::map<std::string, double> alpha_pattern;  // maps suffixes of module names to alphas
  bool is_rank_stabilized = false;              // scale is alpha / sqrt(rank) instead of alpha / rank
  bool uses_dora = false;

  /// Throws kBadCheckpoint for a missing or damaged file and for an unsupported kind of adapter.
  static PeftConfig read(const std::string& path);

  /// Alpha of a module: the matching entry of alpha_pattern, or `alpha`. Returns nullopt if neither is set. The name
  /// `module` has no prefix of tensor names.
  std::optional<double> alpha_of(const std::string& module) const;
};

}  // namespace carillon
