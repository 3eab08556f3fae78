#include "core/adapters/adapter_file.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <set>

#include "core/adapters/adapter_location.h"
#include "core/adapters/module_tensors.h"
#include "core/adapters/peft_config.h"
#include "core/adapters/tensor_names.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

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
    if (parsed->part.rfind("lokr_", 0) == 0) tensors.is_lokr = true;
  }
  return tensors;
}

AdapterModule read_lora(const ModuleTensors& tensors, const AdapterTarget& target, const PeftConfig& config,
                        double dora_epsilon) {
  tensors.forbid("lora_mid", "belongs to a convolution, but " + target.name + " is none");
  AdapterModule module{.projection = target.name, .w1 = {}, .w2 = tensors.product("lora_B", "lora_A"), .magnitude = {}};
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  const auto rank = static_cast<double>(*module.w2.rank());
  const std::optional<double> stored_alpha = tensors.number("alpha");
  const double alpha = stored_alpha ? *stored_alpha : config.alpha(target.name).value_or(rank);
  module.scale = alpha / (config.is_rank_stabilized() ? std::sqrt(rank) : rank);
  if (tensors.has("dora_scale")) {
    module.magnitude = tensors.magnitude("dora_scale", target);
    module.norm_epsilon = dora_epsilon;
  } else if (tensors.has("magnitude") || config.uses_dora()) {
    module.magnitude = tensors.magnitude("magnitude", target);
    module.norm_epsilon = kLoraNormEpsilon;
  }
  return module;
}

/// `alpha` is what the metadata says, for modules that do not say it themselves.
AdapterModule read_lokr(const ModuleTensors& tensors, const AdapterTarget& target, std::optional<double> alpha,
                        double dora_epsilon) {
  tensors.forbid("lokr_t2", "belongs to a convolution, but " + target.name + " is none");
  AdapterModule module{
      .projection = target.name, .w1 = tensors.factor("lokr_w1"), .w2 = tensors.factor("lokr_w2"), .magnitude = {}};
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
  const auto found = file.metadata().find("lokr_config");
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
