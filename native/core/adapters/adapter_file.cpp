#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/adapters/adapter_config.h"
#include "core/adapters/adapter_modules.h"
#include "core/adapters/adapter_tensors.h"
#include "core/adapters/foreign_adapters.h"
#include "core/checkpoint/tensor_file.h"
#include "core/checkpoint/torch_file.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

namespace fs = std::filesystem;

/// Paths of an adapter's files.
struct AdapterLocation {
  std::string weights;                // a .safetensors or .bin file
  std::optional<std::string> config;  // PEFT's adapter_config.json
};

constexpr const char* kPeftWeights[] = {"adapter_model.safetensors", "adapter_model.bin"};
constexpr const char* kPeftConfig = "adapter_config.json";
constexpr const char* kPeftFolder = "adapter";
/// Names of weights that have their settings in their metadata: of LyCORIS and diffusers.
constexpr const char* kNamedWeights[] = {"lokr_weights.safetensors", "loha_weights.safetensors",
                                         "pytorch_lora_weights.safetensors"};
constexpr const char* kSafetensors = ".safetensors";
constexpr const char* kPickles[] = {".bin", ".pt", ".pth"};

bool is_pickle(const fs::path& path) {
  return std::any_of(std::begin(kPickles), std::end(kPickles),
                     [&](const char* each) { return path.extension() == each; });
}

/// Paths of the .safetensors files in `folder`, sorted, without hidden files such as the `._` files of macOS.
std::vector<std::string> safetensors_in(const fs::path& folder) {
  std::vector<std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_hidden = entry.path().filename().string().starts_with('.');
    if (!is_hidden && entry.path().extension() == kSafetensors) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Finds a PEFT adapter in `folder`: its weights, or else the only .safetensors file, and its config. Returns nullopt
/// if there are neither weights nor config; throws if there is only one of the two.
std::optional<AdapterLocation> find_peft(const fs::path& folder) {
  const auto weights = std::find_if(std::begin(kPeftWeights), std::end(kPeftWeights),
                                    [&](const char* name) { return fs::exists(folder / name); });
  const bool has_weights = weights != std::end(kPeftWeights), has_config = fs::exists(folder / kPeftConfig);
  if (!has_weights && !has_config) return std::nullopt;
  if (!has_config) fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftConfig);
  const std::string config = (folder / kPeftConfig).string();
  if (has_weights) return AdapterLocation{(folder / *weights).string(), config};
  const auto files = safetensors_in(folder);
  if (files.size() == 1) return AdapterLocation{files[0], config};
  fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftWeights[0] + " or " + kPeftWeights[1] +
                                      " beside " + kPeftConfig);
}

/// Whether the file's metadata identifies it as LoKr.
bool is_lokr(const std::string& path) { return Safetensors(path).metadata().count(kLokrConfig) != 0; }

/// Finds the only .safetensors file of `folder`, or the only one that is a LoKr. Returns nullopt if there is no
/// .safetensors file.
std::optional<AdapterLocation> find_single(const fs::path& folder) {
  const auto files = safetensors_in(folder);
  if (files.empty()) return std::nullopt;
  if (files.size() == 1) return AdapterLocation{files[0], std::nullopt};
  std::vector<std::string> lokr_files;
  std::copy_if(files.begin(), files.end(), std::back_inserter(lokr_files), is_lokr);
  if (lokr_files.size() == 1) return AdapterLocation{lokr_files[0], std::nullopt};
  fail(ErrorCode::kBadCheckpoint, folder.string() + ": holds " + std::to_string(files.size()) +
                                      " .safetensors files, " + std::to_string(lokr_files.size()) + " of them with " +
                                      kLokrConfig + "; name one of them, such as " + files[0]);
}

AdapterLocation find_in(const fs::path& path) {
  const fs::path folders[] = {path, path / kPeftFolder};
  for (const auto& folder : folders) {
    if (const auto found = find_peft(folder)) return *found;
  }
  for (const char* name : kNamedWeights) {
    for (const auto& folder : folders) {
      if (fs::exists(folder / name)) return {(folder / name).string(), std::nullopt};
    }
  }
  for (const auto& folder : folders) {
    if (const auto found = find_single(folder)) return *found;
  }
  fail(ErrorCode::kBadCheckpoint, path.string() + ": no adapter found (looked in it and in " + kPeftFolder + "/ for " +
                                      kPeftConfig + ", " + kNamedWeights[0] + ", and any .safetensors file)");
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
  const fs::path extension = fs::path(path).extension();
  if (extension != kSafetensors && !is_pickle(path)) {
    const std::string what = extension == ".gguf" ? "a GGUF file; " : "";
    fail(ErrorCode::kBadCheckpoint,
         path + ": " + what + "adapters are read from .safetensors and .bin files, and folders that hold one");
  }
  const fs::path config = fs::path(path).parent_path() / kPeftConfig;
  return {path, fs::exists(config, error) ? std::optional(config.string()) : std::nullopt};
}

/// The tensors of a file, grouped by module.
struct AdapterTensors {
  std::map<std::string, ModuleTensors> modules;
  std::vector<std::string> others;  // tensors that are not part of an adapter
};

AdapterTensors group_by_module(const TensorFile& file) {
  AdapterTensors tensors;
  for (const auto& name : file.names()) {
    const auto parsed = parse_adapter_tensor(file, name);
    if (!parsed) {
      tensors.others.push_back(name);
      continue;
    }
    tensors.modules.try_emplace(parsed->module, file, parsed->module).first->second.add(parsed->part, name);
  }
  // Removes modules without a tensor that identifies the kind of adapter, such as modules with only an alpha.
  std::erase_if(tensors.modules, [&](const auto& named) {
    if (named.second.kind()) return false;
    for (const auto& [part, name] : named.second.names()) tensors.others.push_back(name);
    return true;
  });
  return tensors;
}

std::unique_ptr<const TensorFile> open_weights(const std::string& path) {
  if (is_pickle(path)) return std::make_unique<TorchFile>(path);
  return std::make_unique<Safetensors>(path);
}

/// End of the error message if the adapter belongs to another model.
constexpr const char* kAdvice = ": choose an adapter that was trained for this model";

}  // namespace

Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets, double dora_epsilon) {
  const AdapterLocation location = locate_adapter(path);
  const auto file = open_weights(location.weights);
  const AdapterConfig config = AdapterConfig::read(location.config, *file);
  const auto refuse = [&](const std::string& what) { fail(ErrorCode::kBadCheckpoint, file->path() + ": " + what); };

  const AdapterTensors tensors = group_by_module(*file);
  const auto foreign = [&] { return describe_foreign_file(file->names()); };
  if (tensors.modules.empty()) {
    const auto what = foreign();
    refuse(what ? "holds " + *what + ", which cannot be used as an adapter; LoRA, LoKr, LoHa and IA3 can"
                : "holds no adapter (no tensor is called lora_A, lora_down, lokr_w1, hada_w1_a, ia3_l or the like)");
  }
  const ProjectionIndex index(targets);
  Adapter adapter{.modules = {}, .unmatched_tensors = tensors.others, .warnings = config.warnings};
  std::set<std::string> seen;
  bool lacks_alpha = false;  // some LoRA module has no alpha
  bool is_peft = false;      // of PEFT, which stores alpha only in its config
  bool has_effect = false;
  for (const auto& [name, module] : tensors.modules) {
    const AdapterTarget* target = index.find(name);
    if (target) {
      if (!seen.insert(target->name).second) {
        refuse("module '" + name + "' is a duplicate: another module also changes " + target->name);
      }
      adapter.modules.push_back(read_module(module, *target, config, dora_epsilon));
      is_peft = is_peft || name.starts_with("base_model.model.");
      lacks_alpha = lacks_alpha || (module.kind() == AdapterKind::kLora && !config.alpha && !module.has("alpha"));
      const double scale = adapter.modules.back().scale;
      has_effect = has_effect || scale != 0.0 || adapter.modules.back().magnitude.defined();
      if (!std::isfinite(scale)) refuse("module '" + name + "' has no finite scale: check its alpha and rank");
    } else if (!module.adds_nothing()) {
      for (const auto& [part, tensor] : module.names()) adapter.unmatched_tensors.push_back(tensor);
    }
  }
  if (adapter.modules.empty()) {
    const auto what = foreign();
    refuse((what ? "holds " + *what : "the adapter was made for another model") + ": none of its " +
           std::to_string(tensors.modules.size()) + " modules, such as '" + tensors.modules.begin()->first +
           "', is in this model" + kAdvice);
  }
  for (const auto& name : tensors.others) {
    if (const auto what = describe_unsupported_tensor(name)) {
      refuse("tensor '" + name + "' is " + *what + ", which cannot be applied: only changes of the weights of " +
             "attention and MLP projections can; train without modules_to_save and biases");
    }
  }
  if (lacks_alpha) {
    const auto keys = unread_alphas(*file);
    for (const auto& key : keys) adapter.warnings.push_back("the alpha in the metadata " + key + " was not read: used scale 1");
    if (is_peft && keys.empty()) {
      adapter.warnings.push_back("no alpha in the file and no adapter_config.json beside it: used scale 1");
    }
  }
  if (!has_effect) adapter.warnings.push_back("the adapter changes nothing: its alpha is 0");
  adapter.kind = adapter.modules.front().kind();
  return adapter;
}

}  // namespace carillon
