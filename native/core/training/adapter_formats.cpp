#include "core/training/adapter_formats.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "core/adapters/adapter.h"
#include "core/checkpoint/file_io.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"
#include "core/training/run_files.h"

namespace carillon {
namespace {

using Members = std::map<std::string, std::string>;
using Tensors = std::map<std::string, at::Tensor>;

std::string target_modules() {
  return json_array({json_string("q_proj"), json_string("k_proj"), json_string("v_proj"), json_string("o_proj")});
}

Members members_of(const LoraDesign& design) {
  return {{"kind", json_string("lora")},
          {"rank", std::to_string(design.rank)},
          {"alpha", json_number(design.alpha)},
          {"dropout", json_number(design.dropout)}};
}

Members members_of(const LokrDesign& design) {
  return {{"kind", json_string("lokr")},
          {"dimension", std::to_string(design.dimension)},
          {"alpha", json_number(design.alpha)},
          {"factor", std::to_string(design.factor)},
          {"decompose_both", json_bool(design.decompose_both)},
          {"use_tucker", json_bool(design.use_tucker)},
          {"use_scalar", json_bool(design.use_scalar)},
          {"weight_decompose", json_bool(design.weight_decompose)}};
}

/// PEFT's adapter_config.json with known keys only, because older releases of PEFT reject unknown keys.
std::string peft_config(const LoraDesign& design, const std::string& model_name) {
  Members members = {{"peft_type", json_string("LORA")},
                     {"task_type", json_string("FEATURE_EXTRACTION")},
                     {"r", std::to_string(design.rank)},
                     {"lora_alpha", json_number(design.alpha)},
                     {"lora_dropout", json_number(design.dropout)},
                     {"target_modules", target_modules()},
                     {"bias", json_string("none")},
                     {"inference_mode", "true"},
                     {"init_lora_weights", "true"},
                     {"base_model_name_or_path", model_name.empty() ? "null" : json_string(model_name)},
                     {"megatron_core", json_string("megatron.core")}};
  for (const char* key : {"fan_in_fan_out", "use_rslora", "use_dora", "lora_bias"}) members[key] = "false";
  for (const char* key : {"rank_pattern", "alpha_pattern", "loftq_config"}) members[key] = "{}";
  for (const char* key : {"modules_to_save", "layers_to_transform", "layers_pattern", "exclude_modules", "revision",
                          "auto_mapping", "megatron_config"}) {
    members[key] = "null";
  }
  return json_object(members, true) + "\n";
}

void save_lora(const TrainableAdapter& adapter, const LoraDesign& design, const std::string& directory,
               const std::string& model_name) {
  Tensors tensors;
  for (const auto& module : adapter.modules()) {
    const auto& lora = static_cast<const TrainedLora&>(*module.delta);
    tensors["base_model.model." + module.name + ".lora_A.weight"] = lora.a;
    tensors["base_model.model." + module.name + ".lora_B.weight"] = lora.b;
  }
  const std::string folder = directory + "/adapter";
  std::filesystem::create_directories(folder);
  save_safetensors(folder + "/adapter_model.safetensors", tensors, {{"format", "pt"}});
  write_file_atomically(folder + "/adapter_config.json", peft_config(design, model_name));
}

/// Config from which LyCORIS rebuilds its network. decompose_both and use_scalar are false, because w1 is stored as one
/// matrix that includes the scalar. If use_scalar were true, LyCORIS would also change modules that the file does not
/// contain, by random amounts.
std::string lycoris_config(const LokrDesign& design) {
  const double alpha = design.alpha == 0 ? static_cast<double>(design.dimension) : design.alpha;
  Members members = {{"linear_dim", std::to_string(design.dimension)},
                     {"linear_alpha", json_number(alpha)},
                     {"factor", std::to_string(design.factor)},
                     {"use_tucker", json_bool(design.use_tucker)},
                     {"weight_decompose", json_bool(design.weight_decompose)},
                     {"target_modules", target_modules()}};
  for (const char* key :
       {"decompose_both", "use_scalar", "full_matrix", "bypass_mode", "rs_lora", "unbalanced_factorization"}) {
    members[key] = "false";
  }
  return json_object(members);
}

void save_lokr(const TrainableAdapter& adapter, const LokrDesign& design, const std::string& directory,
               const std::string& run_json) {
  const c10::NoGradGuard no_grad;
  Tensors tensors;
  for (const auto& module : adapter.modules()) {
    const auto& lokr = static_cast<const TrainedLokr&>(*module.delta);
    std::string name = "lycoris_" + module.name;
    std::replace(name.begin(), name.end(), '.', '_');
    tensors[name + ".alpha"] = at::scalar_tensor(lokr.alpha, at::kFloat);
    tensors[name + ".lokr_w1"] = lokr.scaled_w1();
    for (const auto& [part, tensor] : NamedTensors{{".lokr_w2", lokr.w2.whole},
                                                   {".lokr_w2_a", lokr.w2.a},
                                                   {".lokr_w2_b", lokr.w2.b},
                                                   {".dora_scale", lokr.dora_scale}}) {
      if (tensor.defined()) tensors[name + part] = tensor;
    }
  }
  save_safetensors(
      directory + "/lokr_weights.safetensors", tensors,
      {{"algo", "lokr"}, {"format", "lycoris"}, {"lokr_config", lycoris_config(design)}, {"run_metadata", run_json}});
}

}  // namespace

std::string design_json(const AdapterDesign& design) {
  return json_object(std::visit([](const auto& chosen) { return members_of(chosen); }, design));
}

void save_adapter(const TrainableAdapter& adapter, const std::string& directory, const std::string& model_name,
                  const std::string& run_json) {
  if (const auto* lora = std::get_if<LoraDesign>(&adapter.design())) {
    save_lora(adapter, *lora, directory, model_name);
  } else {
    save_lokr(adapter, std::get<LokrDesign>(adapter.design()), directory, run_json);
  }
}

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  fail(ErrorCode::kBadArgument, path + " cannot be resumed: " + what);
}

/// Reads the adapter at `path`. Looks only for the trained projections, because only those can be resumed.
Adapter read(const std::string& path, const TrainableAdapter& adapter) {
  std::vector<AdapterTarget> targets;
  for (const auto& module : adapter.modules()) {
    targets.push_back({module.name, module.weight.size(0), module.weight.size(1)});
  }
  try {
    return read_adapter(path, targets);
  } catch (const Error& error) {
    refuse(path,
           std::string("it has no ") + kTrainingStateFile + " and no adapter to start from: " + error.what());
  }
}

void add_factor(NamedTensors& tensors, const std::string& name, const AdapterMatrix& matrix) {
  if (matrix.right.defined()) {
    tensors.emplace_back(name + "_a", matrix.left);
    tensors.emplace_back(name + "_b", matrix.right);
  } else {
    tensors.emplace_back(name, matrix.left);
  }
}

/// Tensors of one projection in an adapter file, with the names and the order of TrainedDelta::parameters.
NamedTensors stored_parameters(const AdapterModule& module) {
  NamedTensors tensors;
  if (module.w1) {
    add_factor(tensors, "lokr_w1", *module.w1);
    add_factor(tensors, "lokr_w2", module.w2);
  } else {
    tensors = {{"lora_A", module.w2.right}, {"lora_B", module.w2.left}};
  }
  if (module.magnitude.defined()) tensors.emplace_back("dora_scale", module.magnitude);
  return tensors;
}

std::string describe(const NamedTensors& tensors) {
  std::ostringstream text;
  for (const auto& [name, tensor] : tensors) text << (text.tellp() > 0 ? ", " : "") << name << " " << tensor.sizes();
  return text.str();
}

void check_fit(const std::string& path, const Adapter& stored, const TrainableAdapter& adapter) {
  const bool is_lora = std::holds_alternative<LoraDesign>(adapter.design());
  const auto trained = is_lora ? AdapterKind::kLora : AdapterKind::kLokr;
  for (const auto& module : stored.modules) {
    const auto kind = module.kind();
    if (kind != trained)
      refuse(path, std::string("its kind is ") + name_of_choice(kind) + ", not " + name_of_choice(trained));
  }
  if (!stored.unmatched_tensors.empty()) {
    refuse(path, "tensor '" + stored.unmatched_tensors[0] + "' belongs to no trained projection");
  }
  if (stored.modules.size() != adapter.modules().size()) {
    refuse(path, "it changes " + std::to_string(stored.modules.size()) + " of the " +
                     std::to_string(adapter.modules().size()) + " projections that are trained");
  }
}

void copy_module(const std::string& path, const AdapterModule& stored, const TrainedDelta& delta) {
  NamedTensors trained = delta.parameters();
  const auto scalar =
      std::find_if(trained.begin(), trained.end(), [](const auto& named) { return named.first == "scalar"; });
  if (scalar != trained.end()) {
    scalar->second.fill_(1.0);
    trained.erase(scalar);
  }
  const NamedTensors tensors = stored_parameters(stored);
  const std::string there = describe(tensors), here = describe(trained);
  if (there != here) {
    refuse(path, stored.projection + " has " + there + " in the file, but " + here +
                     " in this run: rank, factor, decompose_both or weight_decompose differs");
  }
  constexpr double kTolerance = 1e-6;  // alpha is stored as a float32
  if (std::abs(stored.scale - delta.scale) > kTolerance * std::abs(delta.scale)) {
    refuse(path, "the scale of " + stored.projection + " is " + std::to_string(stored.scale) + " in the file, but " +
                     std::to_string(delta.scale) + " in this run: alpha differs");
  }
  for (size_t i = 0; i < tensors.size(); ++i) trained[i].second.copy_(tensors[i].second);
}

}  // namespace

void import_adapter(const std::string& path, const TrainableAdapter& adapter) {
  const c10::NoGradGuard no_grad;
  const Adapter stored = read(path, adapter);
  check_fit(path, stored, adapter);
  for (const auto& module : adapter.modules()) {
    const auto same = std::find_if(stored.modules.begin(), stored.modules.end(),
                                   [&](const AdapterModule& each) { return each.projection == module.name; });
    copy_module(path, *same, *module.delta);
  }
}

int64_t epochs_in_name(const std::string& folder) {
  static const std::regex kEpoch(R"(epoch_(\d{1,9}))");
  const fs::path path = (fs::path(folder) / "").parent_path();  // removes a trailing slash
  for (const std::string& name : {path.filename().string(), path.parent_path().filename().string()}) {
    std::smatch match;
    if (std::regex_search(name, match, kEpoch)) return std::stoll(match[1]);
  }
  return 0;
}

}  // namespace carillon
