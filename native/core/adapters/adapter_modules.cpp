#include "core/adapters/adapter_modules.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon {
namespace {

constexpr const char* kConvolutionOnly = "is for a convolution, but ";

AdapterModule read_lora(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterSettings& settings) {
  tensors.require_absent("lora_mid", kConvolutionOnly + target.name + " is not one");
  AdapterModule module{.projection = target.name, .w2 = tensors.product("lora_B", "lora_A")};
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  const auto rank = static_cast<double>(*module.w2.rank());
  const std::optional<double> stored_alpha = tensors.number("alpha");
  const double alpha = stored_alpha ? *stored_alpha : settings.peft.alpha_of(target.name).value_or(rank);
  module.scale = alpha / (settings.peft.is_rank_stabilized ? std::sqrt(rank) : rank);
  if (tensors.has("dora_scale")) {
    module.magnitude = tensors.magnitude("dora_scale", target);
    module.norm_epsilon = settings.dora_epsilon;
  } else if (tensors.has("magnitude") || settings.peft.uses_dora) {
    module.magnitude = tensors.magnitude("magnitude", target);
    module.norm_epsilon = kLoraNormEpsilon;
  }
  return module;
}

/// Returns alpha / rank. If alpha is missing or 0, the scale is 1, as in LyCORIS.
double lycoris_scale(std::optional<double> alpha, int64_t rank) {
  return !alpha || *alpha == 0 ? 1.0 : *alpha / static_cast<double>(rank);
}

void read_lycoris_magnitude(const ModuleTensors& tensors, const AdapterTarget& target, double epsilon,
                            AdapterModule& module) {
  if (!tensors.has("dora_scale")) return;
  module.magnitude = tensors.magnitude("dora_scale", target);
  module.norm_epsilon = epsilon;
}

AdapterModule read_lokr(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterSettings& settings) {
  tensors.require_absent("lokr_t2", kConvolutionOnly + target.name + " is not one");
  AdapterModule module{.projection = target.name, .w1 = tensors.factor("lokr_w1"), .w2 = tensors.factor("lokr_w2")};
  tensors.require_fit(target, module.w1->rows() * module.w2.rows(), module.w1->columns() * module.w2.columns());
  // Only a factor that is stored as a product has a rank. Without a rank, alpha has no effect and the scale is 1.
  if (const auto rank = module.w2.rank() ? module.w2.rank() : module.w1->rank()) {
    const auto stored = tensors.number("alpha");
    module.scale = lycoris_scale(stored ? stored : settings.lokr_alpha, *rank);
  }
  read_lycoris_magnitude(tensors, target, settings.dora_epsilon, module);
  return module;
}

AdapterModule read_loha(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterSettings& settings) {
  AdapterModule module{.projection = target.name,
                       .w1 = tensors.hadamard_factor("1"),
                       .w2 = tensors.hadamard_factor("2"),
                       .is_hadamard = true};
  tensors.require_fit(target, module.w1->rows(), module.w1->columns());
  tensors.require_fit(target, module.w2.rows(), module.w2.columns());
  const auto stored = tensors.number("alpha");
  module.scale = lycoris_scale(stored ? stored : settings.peft.alpha_of(target.name), *module.w1->rank());
  read_lycoris_magnitude(tensors, target, settings.dora_epsilon, module);
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

AdapterModule read_module(const ModuleTensors& tensors, const AdapterTarget& target, const AdapterSettings& settings) {
  switch (tensors.kind().value()) {
    case AdapterKind::kLora:
      return read_lora(tensors, target, settings);
    case AdapterKind::kLokr:
      return read_lokr(tensors, target, settings);
    case AdapterKind::kLoha:
      return read_loha(tensors, target, settings);
    case AdapterKind::kIa3:
      break;
  }
  return read_ia3(tensors, target);
}

}  // namespace carillon
