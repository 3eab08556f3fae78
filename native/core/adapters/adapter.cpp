#include "core/adapters/adapter.h"

#include <ATen/ATen.h>

#include "core/adapters/delta.h"
#include "core/dit/dit.h"

namespace carillon {

std::vector<AdapterTarget> adapter_targets(const Dit& dit) {
  Dit copy = dit;  // shares the weights
  std::vector<AdapterTarget> targets;
  for (const auto& projection : copy.projections()) {
    targets.push_back({projection.name, projection.rows, projection.linear->weight.size(1)});
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

}  // namespace carillon
