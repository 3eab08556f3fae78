#include "core/adapters/adapter_modules.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carillon {
namespace {

constexpr const char* kConvolutionOnly = "is for a convolution, but ";

/// Names of a module that alpha_pattern and rank_pattern are matched with: in the file and in the DiT.
std::vector<std::string> names_of(const ModuleTensors& tensors, const AdapterTarget& target) {
  constexpr std::string_view kPeftPrefix = "base_model.model.";
  const std::string& module = tensors.module();
  return {module.starts_with(kPeftPrefix) ? module.substr(kPeftPrefix.size()) : module, target.name};
}

/// Scale of a change of this rank: alpha / rank or alpha / sqrt(rank), times the scalar of LyCORIS. A missing alpha is
/// the rank, and so is alpha 0 in LyCORIS.
double scale_of(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config, double rank) {
  std::optional<double> alpha = tensors.number("alpha");
  const auto configured = config.alpha_of(names_of(tensors, target));
  // Releases of LyCORIS store different alphas for a rank-stabilized adapter.
  const bool is_unclear = config.is_rank_stabilized && !config.is_peft && configured;
  if (!alpha || is_unclear) alpha = configured;
  const bool is_lycoris = !config.is_peft && tensors.kind() != AdapterKind::kLora;
  if (!alpha || (is_lycoris && *alpha == 0)) alpha = rank;
  return *alpha / (config.is_rank_stabilized ? std::sqrt(rank) : rank) * tensors.number("scalar").value_or(1);
}

AdapterModule read_lora(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                        double dora_epsilon) {
  tensors.require_absent("lora_mid", kConvolutionOnly + target.name + " is not one");
  AdapterModule module{.projection = target.name, .w2 = tensors.product("lora_B", "lora_A")};
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  module.scale = scale_of(tensors, target, config, static_cast<double>(*module.w2.rank()));
  if (tensors.has("dora_scale")) {
    module.magnitude = tensors.magnitude("dora_scale", target);
    module.norm_epsilon = dora_epsilon;
  } else if (tensors.has("magnitude") || config.uses_dora) {
    module.magnitude = tensors.magnitude("magnitude", target);
    module.norm_epsilon = kLoraNormEpsilon;
  }
  return module;
}

void read_lycoris_magnitude(const ModuleTensors& tensors, const AdapterTarget& target, double epsilon,
                            AdapterModule& module) {
  if (!tensors.has("dora_scale")) return;
  module.magnitude = tensors.magnitude("dora_scale", target);
  module.norm_epsilon = epsilon;
}

/// Scale of a LoKr. If both factors are stored whole, the file shows no rank: LyCORIS then takes alpha = rank, and PEFT
/// alpha and rank of its config.
double lokr_scale(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                  std::optional<int64_t> rank) {
  if (rank) return scale_of(tensors, target, config, static_cast<double>(*rank));
  const auto configured = config.rank_of(names_of(tensors, target));
  if (config.is_peft) return scale_of(tensors, target, config, *configured);
  const double scalar = tensors.number("scalar").value_or(1);
  return config.is_rank_stabilized && configured ? std::sqrt(*configured) * scalar : scalar;
}

AdapterModule read_lokr(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                        double dora_epsilon) {
  for (const char* core : {"lokr_t1", "lokr_t2"}) {
    tensors.require_absent(core, kConvolutionOnly + target.name + " is not one");
  }
  AdapterModule module{.projection = target.name, .w1 = tensors.factor("lokr_w1"), .w2 = tensors.factor("lokr_w2")};
  tensors.require_fit(target, module.w1->rows() * module.w2.rows(), module.w1->columns() * module.w2.columns());
  module.scale = lokr_scale(tensors, target, config, module.w2.rank() ? module.w2.rank() : module.w1->rank());
  read_lycoris_magnitude(tensors, target, dora_epsilon, module);
  return module;
}

AdapterModule read_loha(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                        double dora_epsilon) {
  AdapterModule module{.projection = target.name,
                       .w1 = tensors.hadamard_factor("1"),
                       .w2 = tensors.hadamard_factor("2"),
                       .is_hadamard = true};
  tensors.require_fit(target, module.w1->rows(), module.w1->columns());
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  module.scale = scale_of(tensors, target, config, static_cast<double>(*module.w1->rank()));
  read_lycoris_magnitude(tensors, target, dora_epsilon, module);
  return module;
}

/// PEFT stores the factors by which weights are multiplied. LyCORIS stores these factors minus 1.
AdapterModule read_ia3(const ModuleTensors& tensors, const AdapterTarget& target) {
  const bool is_peft = tensors.has("ia3_l");
  AdapterModule module{.projection = target.name, .w2 = {}};
  module.gains = is_peft ? tensors.gains("ia3_l", target) - 1 : tensors.gains("ia3_weight", target);
  return module;
}

}  // namespace

AdapterModule read_module(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterConfig& config,
                          double dora_epsilon) {
  switch (tensors.kind().value()) {
    case AdapterKind::kLora:
      return read_lora(tensors, target, config, dora_epsilon);
    case AdapterKind::kLokr:
      return read_lokr(tensors, target, config, dora_epsilon);
    case AdapterKind::kLoha:
      return read_loha(tensors, target, config, dora_epsilon);
    case AdapterKind::kIa3:
      break;
  }
  return read_ia3(tensors, target);
}

}  // namespace carillon
