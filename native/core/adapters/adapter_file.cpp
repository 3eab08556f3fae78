#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/adapters/adapter_tensors.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

namespace fs = std::filesystem;

/// Where the parts of an adapter lie.
struct AdapterLocation {
  std::string weights;                // a .safetensors file
  std::optional<std::string> config;  // PEFT's adapter_config.json
};

constexpr const char* kPeftWeights = "adapter_model.safetensors";
constexpr const char* kPeftConfig = "adapter_config.json";
constexpr const char* kPeftFolder = "adapter";
constexpr const char* kLokrWeights = "lokr_weights.safetensors";
constexpr const char* kLokrConfig = "lokr_config";  // in the metadata
constexpr const char* kExtension = ".safetensors";

/// nullopt where `folder` holds nothing of a PEFT adapter; one half of one is an error.
std::optional<AdapterLocation> find_peft(const fs::path& folder) {
  const fs::path weights = folder / kPeftWeights, config = folder / kPeftConfig;
  const bool has_weights = fs::exists(weights), has_config = fs::exists(config);
  if (!has_weights && !has_config) return std::nullopt;
  if (!has_config) fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftConfig);
  if (!has_weights) {
    fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftWeights + " beside " + kPeftConfig);
  }
  return AdapterLocation{weights.string(), config.string()};
}

/// Whether a file of any name says that it is a LoKr.
bool is_lokr(const std::string& path) { return Safetensors::open(path).metadata().count(kLokrConfig) != 0; }

AdapterLocation find_in(const fs::path& folder) {
  if (const auto found = find_peft(folder)) return *found;
  if (const auto found = find_peft(folder / kPeftFolder)) return *found;
  if (fs::exists(folder / kLokrWeights)) return {(folder / kLokrWeights).string(), std::nullopt};

  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kExtension) files.push_back(entry.path().string());
  }
  if (files.size() == 1) return {files[0], std::nullopt};
  if (files.empty()) {
    fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no adapter here (looked for " + kPeftConfig +
                                        " here and in " + kPeftFolder + "/, " + kLokrWeights +
                                        ", and any .safetensors file)");
  }
  std::vector<std::string> lokr_files;
  std::copy_if(files.begin(), files.end(), std::back_inserter(lokr_files), is_lokr);
  if (lokr_files.size() == 1) return {lokr_files[0], std::nullopt};
  std::sort(files.begin(), files.end());
  fail(ErrorCode::kBadCheckpoint, folder.string() + ": holds " + std::to_string(files.size()) +
                                      " .safetensors files, " + std::to_string(lokr_files.size()) + " of them with " +
                                      kLokrConfig + "; name one of them, such as " + files[0]);
}

AdapterLocation locate_adapter(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    try {
      return find_in(path);
    } catch (const fs::filesystem_error& fault) {
      fail(ErrorCode::kBadCheckpoint, path + ": cannot be read: " + fault.code().message());
    }
  }
  if (!fs::exists(status)) fail(ErrorCode::kBadCheckpoint, path + ": there is no such file or folder");
  if (fs::path(path).extension() != kExtension) {
    fail(ErrorCode::kBadCheckpoint, path + ": adapters are read from .safetensors files and folders that hold one");
  }
  const fs::path config = fs::path(path).parent_path() / kPeftConfig;
  return {path, fs::exists(config, error) ? std::optional(config.string()) : std::nullopt};
}

/// What a PEFT adapter_config.json says about the scale of a LoRA.
struct PeftConfig {
  std::optional<double> alpha;
  std::map<std::string, double> alpha_pattern;  // by the ending of a module's name
  bool is_rank_stabilized = false;              // scale = alpha / sqrt(rank) instead of alpha / rank
  bool uses_dora = false;

  /// Throws kBadCheckpoint where the file is missing or damaged, or asks for what is no plain LoRA or DoRA.
  static PeftConfig read(const std::string& path);

  /// The alpha of `module` (as the tensors name it, without their prefix): that of its pattern, else the one for all;
  /// nullopt where the file says nothing.
  std::optional<double> alpha_of(const std::string& module) const;
};

/// Patterns are regular expressions to PEFT, plain endings of names in all files there are.
bool is_plain(const std::string& pattern) {
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return pattern.find_first_not_of(kNameCharacters) == std::string::npos;
}

PeftConfig PeftConfig::read(const std::string& path) {
  const Json json = Json::read_file(path);
  const auto refuse = [&](const std::string& what) { fail(ErrorCode::kBadCheckpoint, path + ": " + what); };
  const std::string type = json.at("peft_type").as_string();
  if (type != "LORA") refuse("peft_type is " + type + "; of PEFT's adapters only LORA can be read");
  if (json.get_bool("lora_bias", false)) refuse("adapters with a bias of their own (lora_bias) cannot be read");
  PeftConfig config;
  if (json.has("lora_alpha")) config.alpha = json.get_double("lora_alpha");
  if (json.has("alpha_pattern")) {
    for (const auto& [pattern, alpha] : json.at("alpha_pattern").as_object()) {
      if (!is_plain(pattern)) refuse("alpha_pattern '" + pattern + "' is a regular expression; only names can be read");
      config.alpha_pattern[pattern] = alpha.as_double();
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

/// The tensors of a file by module.
struct AdapterTensors {
  std::map<std::string, ModuleTensors> modules;
  std::vector<std::string> others;  // what is no part of an adapter
  bool is_lokr = false;
};

AdapterTensors group_by_module(const Safetensors& file) {
  AdapterTensors tensors;
  for (const auto& name : file.names()) {
    const auto parsed = parse_adapter_tensor(name);
    if (!parsed) {
      tensors.others.push_back(name);
      continue;
    }
    tensors.modules.try_emplace(parsed->module, file, parsed->module).first->second.add(parsed->part, name);
    if (parsed->part.starts_with("lokr_")) tensors.is_lokr = true;
  }
  return tensors;
}

AdapterModule read_lora(const ModuleTensors& tensors, const AdapterTarget& target, const PeftConfig& config,
                        double dora_epsilon) {
  tensors.forbid("lora_mid", "belongs to a convolution, but " + target.name + " is none");
  AdapterModule module{.projection = target.name, .w2 = tensors.product("lora_B", "lora_A")};
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  const auto rank = static_cast<double>(*module.w2.rank());
  const std::optional<double> stored_alpha = tensors.number("alpha");
  const double alpha = stored_alpha ? *stored_alpha : config.alpha_of(target.name).value_or(rank);
  module.scale = alpha / (config.is_rank_stabilized ? std::sqrt(rank) : rank);
  if (tensors.has("dora_scale")) {
    module.magnitude = tensors.magnitude("dora_scale", target);
    module.norm_epsilon = dora_epsilon;
  } else if (tensors.has("magnitude") || config.uses_dora) {
    module.magnitude = tensors.magnitude("magnitude", target);
    module.norm_epsilon = kLoraNormEpsilon;
  }
  return module;
}

/// `alpha` is what the metadata says, for modules that do not say it themselves.
AdapterModule read_lokr(const ModuleTensors& tensors, const AdapterTarget& target, std::optional<double> alpha,
                        double dora_epsilon) {
  tensors.forbid("lokr_t2", "belongs to a convolution, but " + target.name + " is none");
  AdapterModule module{.projection = target.name, .w1 = tensors.factor("lokr_w1"), .w2 = tensors.factor("lokr_w2")};
  tensors.require_fit(target, module.w1->rows() * module.w2.rows(), module.w1->columns() * module.w2.columns());
  // Two whole factors have no rank: their scale is 1, whatever alpha says.
  if (const auto rank = module.w2.rank() ? module.w2.rank() : module.w1->rank()) {
    if (const auto stored = tensors.number("alpha")) alpha = stored;
    const bool is_rank = !alpha || *alpha == 0;
    module.scale = is_rank ? 1.0 : *alpha / static_cast<double>(*rank);
  }
  if (tensors.has("dora_scale")) {
    module.magnitude = tensors.magnitude("dora_scale", target);
    module.norm_epsilon = dora_epsilon;
  }
  return module;
}

/// linear_alpha of the metadata that trainers write into LoKr files.
std::optional<double> lokr_alpha(const Safetensors& file) {
  const auto found = file.metadata().find(kLokrConfig);
  if (found == file.metadata().end()) return std::nullopt;
  const Json config = Json::parse(found->second, file.path() + " (lokr_config)");
  return config.has("linear_alpha") ? std::optional(config.get_double("linear_alpha")) : std::nullopt;
}

}  // namespace

Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets, double dora_epsilon) {
  const AdapterLocation location = locate_adapter(path);
  const PeftConfig config = location.config ? PeftConfig::read(*location.config) : PeftConfig();
  const Safetensors file = Safetensors::open(location.weights);
  const auto refuse = [&](const std::string& what) { fail(ErrorCode::kBadCheckpoint, file.path() + ": " + what); };

  const AdapterTensors tensors = group_by_module(file);
  if (tensors.modules.empty()) refuse("holds no adapter (no tensor is called lora_A, lora_down, lokr_w1 or the like)");
  const std::optional<double> alpha = tensors.is_lokr ? lokr_alpha(file) : std::nullopt;
  const ProjectionIndex index(targets);
  Adapter adapter{.kind = tensors.is_lokr ? Adapter::Kind::kLokr : Adapter::Kind::kLora,
                  .modules = {},
                  .unmatched_tensors = tensors.others};
  std::set<std::string> seen;
  for (const auto& [name, module] : tensors.modules) {
    const AdapterTarget* target = index.find(name);
    if (target) {
      if (!seen.insert(target->name).second) refuse("module '" + name + "' is " + target->name + ", as another is");
      adapter.modules.push_back(tensors.is_lokr ? read_lokr(module, *target, alpha, dora_epsilon)
                                                : read_lora(module, *target, config, dora_epsilon));
    } else if (!module.adds_nothing()) {
      for (const auto& [part, tensor] : module.names()) adapter.unmatched_tensors.push_back(tensor);
    }
  }
  if (adapter.modules.empty()) {
    refuse("none of its " + std::to_string(tensors.modules.size()) + " modules, such as '" +
           tensors.modules.begin()->first + "', is in this model: the adapter was made for another model");
  }
  return adapter;
}

}  // namespace carillon
