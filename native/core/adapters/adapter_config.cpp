#include "core/adapters/adapter_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>

#include "core/adapters/module_pattern.h"
#include "core/checkpoint/json.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

constexpr const char* kDiffusersConfig = "lora_adapter_metadata";  // key in the metadata of diffusers files
/// Keys in the metadata of LyCORIS files.
constexpr const char* kLycorisConfigs[] = {kLokrConfig, "loha_config"};
/// Keys of alpha in the metadata of kohya's programs and others.
constexpr const char* kPlainAlphas[] = {"ss_network_alpha", "network_alpha", "lora_alpha", "alpha"};
constexpr double kPeftDefault = 8;  // default of lora_alpha, alpha and r in PEFT
constexpr int64_t kMaxExpressions = 100;  // bounds the memory that a hostile config can take

/// Settings of PEFT that need more than a changed weight, with the reason.
constexpr std::pair<const char*, const char*> kUnsupported[] = {
    {"layer_replication", "it repeats layers of the base model, so it needs another base model"},
    {"kasa_config", "it removes parts of the base weights, so it needs another base model"},
    {"lora_bias", "it adds biases, and only changes of weights are supported"},
    {"alora_invocation_tokens", "it changes only some positions of a text"},
    {"arrow_config", "it chooses among several adapters"},
    {"monteclora_config", "it samples its weights"},
    {"use_bdlora", "its factors are block-diagonal"},
    {"use_qalora", "its factors are for a quantized model"}};

/// Settings of PEFT that do not change the result, or whose effect is in the tensors.
const std::set<std::string> kNeutral = {
    "alpha", "alpha_pattern", "auto_mapping", "base_model_name_or_path", "bias", "corda_config", "decompose_both",
    "decompose_factor", "ensure_weight_tying", "eva_config", "exclude_modules", "fan_in_fan_out",
    "feedforward_modules", "inference_mode", "init_ia3_weights", "init_lora_weights", "init_weights",
    "layers_pattern", "layers_to_transform", "loftq_config", "lora_alpha", "lora_dropout", "lora_ga_config",
    "megatron_config", "megatron_core", "module_dropout", "modules_to_save", "peft_type", "peft_version",
    "qalora_group_size", "r", "rank_dropout", "rank_dropout_scale", "rank_pattern", "revision", "runtime_config",
    "target_modules", "target_parameters", "task_type", "trainable_token_indices", "use_dora",
    "use_effective_conv2d", "use_rslora", "velora_config"};

/// Values of init_lora_weights and init_weights that leave the base model unchanged.
const std::set<std::string> kPlainInits = {"gaussian", "eva", "orthogonal", "mica", "lycoris", "true", "false"};

const std::set<std::string> kUnset = {"none", "null", "false"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Whether a setting has a value other than null, false, "", "none", "false", [] and {}.
bool is_set(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_bool()) return value.as_bool();
  if (value.is_string()) return !value.as_string().empty() && !kUnset.count(lower(value.as_string()));
  if (value.is_object()) return !value.as_object().empty();
  return !value.is_array() || !value.as_array().empty();
}

/// Parses a finite number in decimal notation.
std::optional<double> parse_number(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// A number, or its decimal text.
double number_of(const Json& value) {
  const auto parsed = value.is_string() ? parse_number(value.as_string()) : std::nullopt;
  return parsed ? *parsed : value.as_double();
}

/// A boolean, or its text.
bool flag_of(const Json& value) {
  const std::string text = value.is_string() ? lower(value.as_string()) : "";
  return text == "true" || (text != "false" && value.as_bool());
}

/// Reads the settings of PEFT whose names start with `prefix` in a JSON object.
class PeftReader {
 public:
  PeftReader(const Json& json, std::string prefix, std::string source)
      : json_(json), prefix_(std::move(prefix)), source_(std::move(source)) {}

  AdapterConfig read() {
    check_base();
    for (const auto& [setting, why] : kUnsupported) {
      if (is_set(setting)) refuse(std::string(setting) + " is set: " + why);
    }
    const std::string type = type_of();
    AdapterConfig config;
    config.is_peft = true;
    config.warnings = unknown_settings();
    const char* const alpha = type == "LORA" || json_.as_object().count(key("lora_alpha")) ? "lora_alpha" : "alpha";
    config.alpha = number(alpha);
    if (!config.alpha && type != "IA3") {
      config.alpha = kPeftDefault;
      config.warnings.push_back(file_name() + " has no " + alpha + ": PEFT's default of 8 was used");
    }
    config.rank = number("r").value_or(kPeftDefault);
    config.alpha_pattern = patterns("alpha_pattern");
    config.rank_pattern = patterns("rank_pattern");
    config.is_rank_stabilized = flag("use_rslora");
    config.uses_dora = flag("use_dora");
    return config;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { fail(ErrorCode::kBadCheckpoint, source_ + ": " + what); }
  std::string file_name() const { return source_.substr(source_.rfind('/') + 1); }
  std::string key(const std::string& setting) const { return prefix_ + setting; }
  bool is_set(const std::string& setting) const {
    return json_.has(key(setting)) && carillon::is_set(json_.at(key(setting)));
  }

  bool flag(const std::string& setting) const { return json_.has(key(setting)) && flag_of(json_.at(key(setting))); }

  std::optional<double> number(const std::string& setting) const {
    const bool has = json_.as_object().count(key(setting)) != 0;
    return has ? std::optional(number_of(json_.at(key(setting)))) : std::nullopt;
  }

  /// Kind of the adapter in upper case. "LORA" if it is missing and the object has other settings of an adapter.
  std::string type_of() const {
    if (!json_.has(key("peft_type"))) {
      if (json_.has(key("lora_alpha")) || json_.has(key("r"))) return "LORA";
      if (json_.has(key("alpha"))) return "";
      refuse("peft_type is missing, and so are lora_alpha, alpha and r");
    }
    std::string type = json_.at(key("peft_type")).as_string();
    for (const char* known : {"LORA", "LOHA", "LOKR", "IA3"}) {
      if (lower(type) == lower(known) || lower(type) == lower(std::string("PeftType.") + known)) return known;
    }
    refuse("peft_type is " + type + "; supported are LORA, LOHA, LOKR and IA3");
  }

  /// Refuses an adapter for a changed base model.
  void check_base() const {
    for (const char* setting : {"init_lora_weights", "init_weights"}) {
      if (!json_.has(key(setting)) || json_.at(key(setting)).is_bool()) continue;
      const std::string init = json_.at(key(setting)).as_string();
      if (kPlainInits.count(lower(init))) continue;
      refuse(std::string(setting) + " is " + init + ": the adapter needs the base model that this initialization " +
             "changed. PEFT converts adapters of pissa, corda, olora and lora_ga: " +
             "save_pretrained(path_initial_model_for_weight_conversion=...)");
    }
  }

  std::vector<std::string> unknown_settings() const {
    std::vector<std::string> warnings;
    for (const auto& [name, value] : json_.as_object()) {
      if (!name.starts_with(prefix_)) continue;
      const std::string setting = name.substr(prefix_.size());
      const bool is_known = kNeutral.count(setting) || setting.find('.') != std::string::npos;
      if (!is_known && carillon::is_set(value)) {
        warnings.push_back(file_name() + ": the unknown setting " + setting + " was ignored");
      }
    }
    return warnings;
  }

  AdapterConfig::Patterns patterns(const std::string& setting) const {
    if (!json_.has(key(setting))) return {};
    std::vector<std::pair<std::string, const Json*>> in_file_order;
    for (const auto& [pattern, value] : json_.at(key(setting)).as_object()) in_file_order.emplace_back(pattern, &value);
    std::sort(in_file_order.begin(), in_file_order.end(),
              [](const auto& a, const auto& b) { return a.second->offset() < b.second->offset(); });
    AdapterConfig::Patterns patterns;
    int64_t expressions = 0;
    for (const auto& [pattern, value] : in_file_order) {
      if (!is_module_name(pattern) && ++expressions > kMaxExpressions) {
        refuse(setting + " has more than " + std::to_string(kMaxExpressions) + " regular expressions");
      }
      try {
        patterns.emplace_back(module_pattern(pattern), number_of(*value));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kBadArgument) throw;
        refuse(setting + " '" + pattern + "' is not supported: " + error.what());
      }
    }
    return patterns;
  }

  const Json& json_;
  const std::string prefix_, source_;
};

AdapterConfig read_peft(const std::string& path) {
  return PeftReader(Json::read_file(path), "", path).read();
}

/// Reads the settings of diffusers. Their names may start with the name of a model, such as "transformer.". Returns
/// nullopt if there are none.
std::optional<AdapterConfig> read_diffusers(const std::string& text, const std::string& source) {
  const Json json = Json::parse(text, source);
  if (json.is_null()) return std::nullopt;
  std::set<std::string> prefixes;
  for (const auto& [name, value] : json.as_object()) prefixes.insert(name.substr(0, name.find('.') + 1));
  if (prefixes.empty()) return std::nullopt;
  std::string prefix = *prefixes.begin();  // "" is the first if it is among them
  if (prefixes.count("transformer.")) {
    prefix = "transformer.";
  } else if (prefixes.size() > 1 && !prefix.empty()) {
    fail(ErrorCode::kBadCheckpoint, source + " has settings of several models, and none is called transformer");
  }
  return PeftReader(json, prefix, source).read();
}

AdapterConfig read_lycoris(const std::string& text, const std::string& source) {
  const Json json = Json::parse(text, source);
  AdapterConfig config;
  if (json.has("linear_alpha")) config.alpha = number_of(json.at("linear_alpha"));
  if (json.has("linear_dim")) config.rank = number_of(json.at("linear_dim"));
  config.is_rank_stabilized = json.get_bool("rs_lora", false);
  return config;
}

/// Reads the settings in the metadata of a file. Returns nullopt if it has none.
std::optional<AdapterConfig> read_metadata(const TensorFile& file) {
  const auto& metadata = file.metadata();
  const auto source = [&](const char* key) { return file.path() + " (" + key + ")"; };
  if (const auto found = metadata.find(kDiffusersConfig); found != metadata.end()) {
    if (const auto config = read_diffusers(found->second, source(kDiffusersConfig))) return config;
  }
  for (const char* key : kLycorisConfigs) {
    if (const auto found = metadata.find(key); found != metadata.end()) return read_lycoris(found->second, source(key));
  }
  for (const char* key : kPlainAlphas) {
    const auto found = metadata.find(key);
    if (found == metadata.end() || found->second.empty() || lower(found->second) == "none") continue;
    AdapterConfig config;
    config.alpha = parse_number(found->second);
    if (!config.alpha) fail(ErrorCode::kBadCheckpoint, source(key) + ": '" + found->second + "' is not a number");
    return config;
  }
  return std::nullopt;
}

/// Whether the tensors are those of LyCORIS or kohya's programs, which store alpha beside the weights. An
/// adapter_config.json in the same folder then belongs to another file.
bool has_own_alphas(const TensorFile& file) {
  const auto names = file.names();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".alpha") || name.starts_with("lycoris_");
  });
}

std::optional<double> first_matching(const AdapterConfig::Patterns& patterns, const std::vector<std::string>& names) {
  for (const auto& [matches, number] : patterns) {
    if (std::any_of(names.begin(), names.end(), matches)) return number;
  }
  return std::nullopt;
}

}  // namespace

AdapterConfig AdapterConfig::read(const std::optional<std::string>& path, const TensorFile& file) {
  const std::string name = file.path().substr(file.path().rfind('/') + 1);
  if (path && name.starts_with("adapter_model.")) return read_peft(*path);
  if (const auto config = read_metadata(file)) return *config;
  return path && !has_own_alphas(file) ? read_peft(*path) : AdapterConfig();
}

std::vector<std::string> unread_alphas(const TensorFile& file) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : file.metadata()) {
    const bool is_alpha = lower(key).find("alpha") != std::string::npos && parse_number(value);
    if (is_alpha || value.find("alpha\"") != std::string::npos) keys.push_back(key);
  }
  return keys;
}

std::optional<double> AdapterConfig::alpha_of(const std::vector<std::string>& names) const {
  const auto own = first_matching(alpha_pattern, names);
  return own ? own : alpha;
}

std::optional<double> AdapterConfig::rank_of(const std::vector<std::string>& names) const {
  const auto own = first_matching(rank_pattern, names);
  return own ? own : rank;
}

}  // namespace carillon
