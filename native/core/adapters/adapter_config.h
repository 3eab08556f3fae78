#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/tensor_file.h"

namespace carillon {

/// Settings of an adapter that are not in its tensors: its kind and its scale.
struct AdapterConfig {
  /// A number for the modules whose name the pattern matches. The first match counts.
  using Patterns = std::vector<std::pair<std::function<bool(const std::string&)>, double>>;

  std::optional<double> alpha, rank;
  Patterns alpha_pattern, rank_pattern;
  bool is_rank_stabilized = false;  // scale is alpha / sqrt(rank) instead of alpha / rank
  bool uses_dora = false;
  bool is_peft = false;               // false: LyCORIS, kohya or unknown
  std::vector<std::string> warnings;  // settings that were ignored or assumed

  /// Reads the settings of the weights in `file`. They are in its metadata or in the adapter_config.json at `path`. If
  /// both have settings, adapter_config.json counts for the file adapter_model.*, and the metadata for other files. The
  /// adapter_config.json does not count for other files of LyCORIS or kohya's programs.
  /// Throws kBadCheckpoint for a damaged config and for settings that this model cannot follow.
  static AdapterConfig read(const std::optional<std::string>& path, const TensorFile& file);

  /// Alpha of a module with these names: the first match of alpha_pattern, or `alpha`; nullopt if neither is set.
  std::optional<double> alpha_of(const std::vector<std::string>& names) const;
  std::optional<double> rank_of(const std::vector<std::string>& names) const;
};

/// Keys in the metadata of a file without AdapterConfig::alpha whose values seem to have an alpha.
std::vector<std::string> unread_alphas(const TensorFile& file);

/// Key in the metadata of LoKr files. Its value has the settings of LyCORIS as JSON.
constexpr const char* kLokrConfig = "lokr_config";

}  // namespace carillon
