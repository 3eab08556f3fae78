#include "core/adapters/adapter.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "core/checkpoint/checkpoint.h"
#include "core/dit/dit.h"

namespace carillon {

std::vector<AdapterTarget> adapter_targets(const Dit& dit) {
  Dit copy = dit;  // a copy, because projections() is not const; copies share the weights
  std::vector<AdapterTarget> targets;
  for (const auto& projection : copy.projections()) {
    targets.push_back({projection.name, projection.rows, projection.linear->inputs()});
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

AdapterKind AdapterModule::kind() const {
  if (gains.defined()) return AdapterKind::kIa3;
  if (!w1) return AdapterKind::kLora;
  return is_hadamard ? AdapterKind::kLoha : AdapterKind::kLokr;
}

at::Tensor AdapterModule::delta(const at::Tensor& weight) const {
  const at::Device device = weight.device();
  if (gains.defined()) return weight * gains.to(device, at::kFloat);
  if (!w1) return w2.value(device) * scale;
  const at::Tensor first = w1->value(device), second = w2.value(device);
  return is_hadamard ? first * second * scale : lokr_delta(first, second, scale);
}

at::Tensor AdapterModule::adapt(const at::Tensor& weight, double strength) const {
  if (!magnitude.defined()) return weight + delta(weight) * strength;
  const at::Tensor norms = magnitude.to(weight.device(), at::kFloat);
  return at::lerp(weight, dora_weight(weight + delta(weight), norms, norm_epsilon), strength);
}

namespace {

/// Change of a projection by one adapter.
struct Change {
  const AdapterModule& module;
  double strength;
};

/// Maps each projection name to its changes, in the order of the adapters.
std::map<std::string, std::vector<Change>> changes_of(const std::vector<ActiveAdapter>& active) {
  std::map<std::string, std::vector<Change>> changes;
  for (const auto& [adapter, strength] : active) {
    if (strength == 0) continue;
    for (const auto& module : adapter->modules) changes[module.projection].push_back({module, strength});
  }
  return changes;
}

/// Adds all changes to `base`. Computes each change from the original `base`, and rounds only the sum to its type.
at::Tensor changed(const at::Tensor& base, const std::vector<Change>& changes) {
  const at::Tensor wide = base.to(at::kFloat);
  at::Tensor sum = changes[0].module.adapt(wide, changes[0].strength);
  for (size_t i = 1; i < changes.size(); ++i) {
    sum = sum + (changes[i].module.adapt(wide, changes[i].strength) - wide);
  }
  return sum.to(base.scalar_type());
}

/// Groups the projections by the Linear that contains them. A group is in the order of the rows of the Linear.
std::vector<std::vector<Projection>> projections_by_linear(Dit& dit) {
  std::vector<std::vector<Projection>> groups;
  for (const Projection& projection : dit.projections()) {
    const bool is_next = !groups.empty() && groups.back().back().linear == projection.linear;
    if (!is_next) groups.emplace_back();
    groups.back().push_back(projection);
  }
  return groups;
}

/// Merges `changes` into the weight of the Linear that contains `projections`. Without changes, restores the weight of
/// the checkpoint.
void merge(const std::vector<Projection>& projections, const Weights& decoder,
           const std::map<std::string, std::vector<Change>>& changes) {
  nn::Linear& linear = *projections[0].linear;
  const int64_t depth = linear.inputs();
  std::vector<std::string> names;
  std::vector<int64_t> rows;
  std::vector<std::optional<at::Tensor>> merged;
  for (const Projection& projection : projections) {
    names.push_back(projection.name);
    rows.push_back(projection.rows);
    merged.emplace_back();
    const auto found = changes.find(projection.name);
    if (found == changes.end()) continue;
    const at::Tensor base = decoder.get(projection.name + ".weight", {projection.rows, depth});
    const at::Tensor weight = changed(base, found->second);
    // Some LoKr files contain untrained modules. These leave the weight equal to the base.
    if (!weight.equal(base)) merged.back() = weight;
  }
  const nn::Linear base{nn::Linear::read_parts(decoder, names, depth, rows), {}};
  linear.is_merged = std::any_of(merged.begin(), merged.end(), [](const auto& weight) { return weight.has_value(); });
  if (!linear.is_merged) {
    linear.parts = base.parts;
    return;
  }
  std::vector<kernels::Matrix> parts;
  for (size_t i = 0; i < projections.size(); ++i) {
    parts.push_back(merged[i] ? kernels::quantize(*merged[i], base.parts[0].quantization())
                              : base.rows(projections[i].first_row, rows[i]));
  }
  linear.parts = {parts.size() == 1 ? parts[0] : kernels::concatenate(parts)};
}

}  // namespace

void merge_adapters(Dit& dit, const Weights& decoder, const std::vector<ActiveAdapter>& active) {
  const at::NoGradGuard no_grad;
  const auto changes = changes_of(active);
  bool is_changed = false;
  try {
    for (const auto& projections : projections_by_linear(dit)) {
      const bool is_named = std::any_of(projections.begin(), projections.end(), [&](const Projection& projection) {
        return changes.count(projection.name) != 0;
      });
      if (!is_named && !projections[0].linear->is_merged) continue;
      merge(projections, decoder, changes);
      is_changed = true;
    }
  } catch (...) {
    if (!active.empty()) merge_adapters(dit, decoder, {});
    throw;
  }
  if (is_changed) dit.refresh();
}

at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale) { return at::kron(w1, w2) * scale; }

at::Tensor row_norms(const at::Tensor& weight) { return at::linalg_vector_norm(weight, 2, {1}, /*keepdim=*/true); }

at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon) {
  const int64_t along = magnitude.size(1) == 1 ? 1 : 0;
  const at::Tensor norms = at::linalg_vector_norm(changed, 2, {along}, /*keepdim=*/true);
  return changed * (magnitude / (norms + norm_epsilon));
}

DimensionFactors split_dimension(int64_t dimension, int64_t factor) {
  const auto ordered = [](int64_t a, int64_t b) { return DimensionFactors{std::min(a, b), std::max(a, b)}; };
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
  const DimensionFactors rows = split_dimension(out, factor), columns = split_dimension(in, factor);
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
