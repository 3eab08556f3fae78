#pragma once
#include <map>
#include <optional>
#include <string>

namespace carillon {

/// What a PEFT adapter_config.json says about the scale of a LoRA.
class PeftConfig {
 public:
  /// Throws kBadCheckpoint where the file is missing or damaged, or asks for what is no plain LoRA or DoRA.
  static PeftConfig read(const std::string& path);

  /// alpha of `module` (as the tensors name it, without their prefix): of its pattern, else for all; nullopt where
  /// the file says nothing.
  std::optional<double> alpha(const std::string& module) const;
  /// scale = alpha / sqrt(rank) instead of alpha / rank.
  bool is_rank_stabilized() const { return is_rank_stabilized_; }
  bool uses_dora() const { return uses_dora_; }

 private:
  std::optional<double> alpha_;
  std::map<std::string, double> alpha_pattern_;  // by the ending of a module's name
  bool is_rank_stabilized_ = false, uses_dora_ = false;
};

}  // namespace carillon
