#include "core/adapters/peft_config.h"

#include "core/checkpoint/json.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Whether a key of alpha_pattern is a plain suffix of a module name, not a regular expression. PEFT accepts both, but
/// existing files have only suffixes.
bool is_plain(const std::string& pattern) {
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return pattern.find_first_not_of(kNameCharacters) == std::string::npos;
}

}  // namespace

PeftConfig PeftConfig::read(const std::string& path) {
  const Json json = Json::read_file(path);
  const auto refuse = [&](const std::string& what) { fail(ErrorCode::kBadCheckpoint, path + ": " + what); };
  const std::string type = json.at("peft_type").as_string();
  if (type != "LORA" && type != "LOHA" && type != "IA3") {
    refuse("peft_type is " + type + "; supported are LORA, LOHA and IA3");
  }
  if (json.get_bool("lora_bias", false)) refuse("lora_bias is true, which is not supported");
  PeftConfig config;
  const char* const alpha = type == "LORA" ? "lora_alpha" : "alpha";
  if (json.has(alpha)) config.alpha = json.get_double(alpha);
  if (json.has("alpha_pattern")) {
    for (const auto& [pattern, its_alpha] : json.at("alpha_pattern").as_object()) {
      if (!is_plain(pattern)) {
        refuse("alpha_pattern '" + pattern + "' is a regular expression; only module names are supported");
      }
      config.alpha_pattern[pattern] = its_alpha.as_double();
    }
  }
  config.is_rank_stabilized = json.get_bool("use_rslora", false);
  config.uses_dora = json.get_bool("use_dora", false);
  return config;
}

std::optional<double> PeftConfig::alpha_of(const std::string& module) const {
  for (const auto& [pattern, its_alpha] : alpha_pattern) {
    if (module == pattern || module.ends_with("." + pattern)) return its_alpha;
  }
  return alpha;
}

}  // namespace carillon
