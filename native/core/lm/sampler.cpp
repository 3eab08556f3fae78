#include "core/lm/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.h"

namespace carillon {

namespace {

struct Candidate {
  float weight;
  int32_t column;
  bool operator<(const Candidate& other) const {
    return weight != other.weight ? weight > other.weight : column < other.column;
  }
};

/// Candidates by falling weight, sorted only as far as they are asked for.
class FallingOrder {
 public:
  explicit FallingOrder(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

  size_t size() const { return candidates_.size(); }
  const Candidate& operator[](size_t index) {
    while (index >= sorted_) sort_more();
    return candidates_[index];
  }

 private:
  void sort_more() {
    const size_t end = std::min(candidates_.size(), std::max<size_t>(64, sorted_ * 4));
    const auto begin = candidates_.begin() + sorted_, middle = candidates_.begin() + end;
    if (middle != candidates_.end()) std::nth_element(begin, middle, candidates_.end());
    std::sort(begin, middle);
    sorted_ = end;
  }

  std::vector<Candidate> candidates_;
  size_t sorted_ = 0;
};

double sum(std::span<const float> weights) {
  double lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= weights.size(); i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += weights[i + lane];
  }
  for (; i < weights.size(); ++i) lanes[i % 8] += weights[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// The columns of at least `floor`. Columns of weight 0 are never drawn.
std::vector<Candidate> columns_above(std::span<const float> weights, double floor) {
  const float least = std::max(static_cast<float>(floor), std::numeric_limits<float>::denorm_min());
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= least) candidates.push_back({weights[i], static_cast<int32_t>(i)});
  }
  return candidates;
}

}  // namespace

void penalize(const at::Tensor& row, int64_t first, std::span<const int32_t> ids, double penalty) {
  std::vector<int64_t> columns;
  for (const int32_t id : ids) {
    if (id >= first && id < first + row.size(0)) columns.push_back(id - first);
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (columns.empty()) return;
  const auto index = at::tensor(columns, at::kLong).to(row.device());
  const auto values = row.index_select(0, index);
  row.index_copy_(0, index, at::where(values < 0, values * penalty, values / penalty));
}

at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale) {
  return unconditional + (conditional - unconditional) * scale;
}

std::vector<int64_t> most_likely(const at::Tensor& scores) {
  const auto [value, column] = scores.max(1);
  if (!value.isfinite().all().item<bool>()) fail(ErrorCode::kNotFinite, "the language model's logits are not finite");
  const auto host = column.cpu().contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

at::Tensor candidate_weights(const at::Tensor& scores, double temperature, int64_t top_k) {
  auto relative = scores - scores.amax(1, true);
  if (top_k > 0 && top_k < scores.size(1)) {
    const auto least = std::get<0>(relative.topk(top_k, 1, true, true)).narrow(1, top_k - 1, 1);
    relative = relative.masked_fill(relative < least, -std::numeric_limits<double>::infinity());
  }
  return relative.div(temperature).exp().to(at::kCPU, at::kFloat).contiguous();
}

int64_t draw(std::span<const float> weights, double top_p, double uniform) {
  const double total = sum(weights);
  if (!(total > 0.0) || !std::isfinite(total)) fail(ErrorCode::kNotFinite, "the language model's logits are not finite");
  const bool truncates = top_p > 0.0 && top_p < 1.0;
  // Columns below this weight hold less than 1 - top_p together, so none of them is in the set.
  const double floor = truncates ? (1.0 - top_p) * total / static_cast<double>(weights.size()) : 0.0;
  FallingOrder order(columns_above(weights, floor));
  double mass = total;
  if (truncates) {
    mass = 0.0;
    for (size_t i = 0; i < order.size() && mass < top_p * total; ++i) mass += order[i].weight;
  }
  double before = 0.0;
  for (size_t i = 0; i < order.size(); ++i) {
    before += order[i].weight;
    if (before > uniform * mass) return order[i].column;
  }
  return order[order.size() - 1].column;
}

}  // namespace carillon
