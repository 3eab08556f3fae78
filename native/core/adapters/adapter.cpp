#include "core/adapters/adapter.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "core/checkpoint/checkpoint.h"
#include "core/dit/dit.h"

namespace carillon {

std::vector<AdapterTarget> adapter_targets(const Dit& dit) {
  Dit copy = dit;  // shares the weights
  std::vector<AdapterTarget> targets;
  for (const auto& projection : copy.projections()) {
    targets.push_back({projection.name, projection.rows, projection.linear->weight.depth()});
  }
  return targets;
}

std::optional<int64_t> AdapterMatrix::rank() const {
  return right.defined() ? std::optional(right.size(0)) : std::nullopt;
}

bool AdapterMatrix::is_zero() const {
  const auto zero = [](const at::Tensor& t) { return !t.count_nonzero().item<bool>(); };
  return zero(left) || (right.defined() && zero(right));
}

at::Tensor AdapterMatrix::value(at::Device device) const {
  const at::Tensor first = left.to(device, at::kFloat);
  return right.defined() ? at::matmul(first, right.to(device, at::kFloat)) : first;
}

at::Tensor AdapterModule::adapt(const at::Tensor& weight, double strength) const {
  const at::Device device = weight.device();
  const at::Tensor delta = w1 ? lokr_delta(w1->value(device), w2.value(device), scale) : w2.value(device) * scale;
  if (!magnitude.defined()) return weight + delta * strength;
  return at::lerp(weight, dora_weight(weight + delta, magnitude.to(device, at::kFloat), norm_epsilon), strength);
}

namespace {

/// A weight of one projection alone is replaced: the base is a view on the checkpoint's file, never to be written to.
/// Rows of a fused weight, which is the model's own, are overwritten; one that is stored in fewer bits than the model
/// computes with becomes wide before, so that an adapter is rounded once.
void assign(const Projection& projection, const at::Tensor& weight) {
  kernels::Matrix& whole = projection.linear->weight;
  if (whole.outputs() == projection.rows) {
    whole = kernels::quantize(weight, whole.quantization());
    return;
  }
  if (!whole.is_quantized()) whole = whole.dense(weight.scalar_type());
  projection.weight().assign(weight);
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
    const int64_t depth = projection.linear->weight.depth();
    const at::Tensor base = decoder.get(projection.name + ".weight", {projection.rows, depth});
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

at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale) { return at::kron(w1, w2) * scale; }

at::Tensor row_norms(const at::Tensor& weight) { return at::linalg_vector_norm(weight, 2, {1}, /*keepdim=*/true); }

at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon) {
  const int64_t along = magnitude.size(1) == 1 ? 1 : 0;
  const at::Tensor norms = at::linalg_vector_norm(changed, 2, {along}, /*keepdim=*/true);
  return changed * (magnitude / (norms + norm_epsilon));
}

Split split_dimension(int64_t dimension, int64_t factor) {
  const auto ordered = [](int64_t a, int64_t b) { return Split{std::min(a, b), std::max(a, b)}; };
  if (factor > 0 && dimension % factor == 0) return ordered(factor, dimension / factor);
  const int64_t largest = factor < 0 ? dimension : factor;
  int64_t divisor = 1;
  while (divisor < dimension / divisor) {
    int64_t next = divisor + 1;
    while (dimension % next != 0) ++next;
    if (next > largest) break;
    divisor = next;
  }
  return ordered(divisor, dimension / divisor);
}

LokrShape LokrShape::of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both) {
  const Split rows = split_dimension(out, factor), columns = split_dimension(in, factor);
  const auto is_low_rank = [&](int64_t a, int64_t b) { return 2 * rank < std::max(a, b); };
  return {.out = rows,
          .in = columns,
          .w1_is_whole = !(decompose_both && is_low_rank(rows.small, columns.small)),
          .w2_is_whole = !is_low_rank(rows.large, columns.large)};
}

double LokrShape::effective_alpha(double alpha, int64_t rank) const {
  return (w1_is_whole && w2_is_whole) || alpha == 0 ? static_cast<double>(rank) : alpha;
}

}  // namespace carillon
