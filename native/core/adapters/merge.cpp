#include "core/adapters/merge.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>

namespace carillon {
namespace {

/// A weight of one projection alone is replaced: the base is a view on the checkpoint's file, never to be written to.
/// Rows of a fused weight, which is the model's own, are overwritten.
void assign(const Projection& projection, const at::Tensor& weight) {
  at::Tensor& whole = projection.linear->weight;
  if (whole.size(0) == projection.rows) {
    whole = weight;
  } else {
    projection.weight().copy_(weight);
  }
}

/// Calls make(module, base weight) for every projection that the adapter names, and assigns what it returns.
template <typename Make>
void reassign(Dit& dit, const Weights& decoder, const Adapter& adapter, const Make& make) {
  const at::NoGradGuard no_grad;
  std::map<std::string, const AdapterModule*> modules;
  for (const auto& module : adapter.modules) modules[module.projection] = &module;
  for (const auto& projection : dit.projections()) {
    const auto found = modules.find(projection.name);
    if (found == modules.end()) continue;
    const at::Tensor& current = projection.linear->weight;
    const at::Tensor base =
        decoder.get(projection.name + ".weight", {projection.rows, current.size(1)}, current.scalar_type());
    assign(projection, make(*found->second, base));
  }
  dit.refresh();
}

}  // namespace

void merge_adapter(Dit& dit, const Weights& decoder, const Adapter& adapter, double strength) {
  if (strength == 0) return restore_base(dit, decoder, adapter);
  reassign(dit, decoder, adapter, [&](const AdapterModule& module, const at::Tensor& base) {
    const at::Tensor merged = module.adapt(base.to(at::kFloat), strength).to(base.scalar_type());
    // LoKr files name modules that were not trained: those need no weight of their own.
    return merged.equal(base) ? base : merged;
  });
}

void restore_base(Dit& dit, const Weights& decoder, const Adapter& adapter) {
  reassign(dit, decoder, adapter, [](const AdapterModule&, const at::Tensor& base) { return base; });
}

}  // namespace carillon
