#include "core/adapters/peft_config.h"

#include "core/checkpoint/json.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Patterns are regular expressions to PEFT, plain endings of names in all files there are.
bool is_plain(const std::string& pattern) {
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return pattern.find_first_not_of(kNameCharacters) == std::string::npos;
}

bool matches(const std::string& module, const std::string& pattern) {
  if (module == pattern) return true;
  const std::string ending = "." + pattern;
  return module.size() > ending.size() && module.compare(module.size() - ending.size(), ending.size(), ending) == 0;
}

}  // namespace

PeftConfig PeftConfig::read(const std::string& path) {
  const Json json = Json::read_file(path);
  const auto refuse = [&](const std::string& what) { fail(ErrorCode::kBadCheckpoint, path + ": " + what); };
  const std::string type = json.at("peft_type").as_string();
  if (type != "LORA") refuse("peft_type is " + type + "; of PEFT's adapters only LORA can be read");
  if (json.get_bool("lora_bias", false)) refuse("adapters with a bias of their own (lora_bias) cannot be read");
  PeftConfig config;
  if (json.has("lora_alpha")) config.alpha_ = json.get_double("lora_alpha");
  if (json.has("alpha_pattern")) {
    for (const auto& [pattern, alpha] : json.at("alpha_pattern").as_object()) {
      if (!is_plain(pattern)) refuse("alpha_pattern '" + pattern + "' is a regular expression; only names can be read");
      config.alpha_pattern_[pattern] = alpha.as_double();
    }
  }
  config.is_rank_stabilized_ = json.get_bool("use_rslora", false);
  config.uses_dora_ = json.get_bool("use_dora", false);
  return config;
}

std::optional<double> PeftConfig::alpha(const std::string& module) const {
  for (const auto& [pattern, alpha] : alpha_pattern_) {
    if (matches(module, pattern)) return alpha;
  }
  return alpha_;
}

}  // namespace carillon
