#include "core/lm/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/runtime/device.h"
#include "core/runtime/error.h"
#include "core/runtime/philox.h"

namespace carillon {

double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index) {
  const auto [low, high] = words_of(index);
  const auto words = philox({low, high, phase, 0}, seed);
  const uint64_t bits = (uint64_t{words[0] >> 5} << 26) | (words[1] >> 6);
  return static_cast<double>(bits) * 0x1p-53;
}

void fail_not_finite() {
  fail(ErrorCode::kNotFinite, "the language model's logits are not finite: its weights may be damaged");
}

namespace {

/// Orders columns by descending weight, and equal weights by ascending column. Omits columns of weight 0. To avoid a
/// full sort, collects weights in buckets by exponent and leading mantissa bits, and sorts only one bucket.
class DescendingOrder {
 public:
  explicit DescendingOrder(std::span<const float> weights) : weights_(weights), mass_(kBuckets) {
    for (const float weight : weights) {
      if (weight > 0.0f) mass_[bucket_of(weight)] += weight;
      unordered_ |= std::isnan(weight);
    }
    for (const double mass : mass_) total_ += mass;
  }

  /// Sum of the weights; NaN if one of them is NaN.
  double total() const { return unordered_ ? std::numeric_limits<double>::quiet_NaN() : total_; }

  struct Place {
    int64_t column;
    double mass;  // cumulative, including this column
  };

  /// First column with a cumulative mass of at least `target`; the last column if rounding keeps the mass below it.
  Place find(double target) const {
    size_t bucket = 0;
    double before = 0.0, reached = 0.0;
    for (size_t next = kBuckets; next-- > 0 && (reached < target || reached == 0.0);) {
      if (mass_[next] == 0.0) continue;
      bucket = next;
      before = reached;
      reached += mass_[next];
    }
    const auto columns = columns_of(bucket);
    Place place{columns.front(), before};
    for (const int64_t column : columns) {
      place = {column, place.mass + weights_[static_cast<size_t>(column)]};
      if (place.mass >= target) break;
    }
    return place;
  }

 private:
  static constexpr size_t kBuckets = 4096;  // sign 0, 8 bits of exponent, 4 of mantissa

  static size_t bucket_of(float weight) { return std::bit_cast<uint32_t>(weight) >> 19; }

  std::vector<int64_t> columns_of(size_t bucket) const {
    std::vector<int64_t> columns;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] > 0.0f && bucket_of(weights_[i]) == bucket) columns.push_back(static_cast<int64_t>(i));
    }
    std::stable_sort(columns.begin(), columns.end(), [this](int64_t a, int64_t b) {
      return weights_[static_cast<size_t>(a)] > weights_[static_cast<size_t>(b)];
    });
    return columns;
  }

  std::span<const float> weights_;
  std::vector<double> mass_;  // total weight of each bucket
  double total_ = 0.0;
  bool unordered_ = false;
};

}  // namespace

void penalize(const at::Tensor& row, int64_t first, std::span<const int32_t> ids, double penalty) {
  std::vector<int64_t> columns;
  for (const int32_t id : ids) {
    if (id >= first && id < first + row.size(0)) columns.push_back(id - first);
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (columns.empty()) return;
  const auto index = upload(at::tensor(columns, at::kLong), row.device());
  const auto values = row.index_select(0, index);
  row.index_copy_(0, index, at::where(values < 0, values * penalty, values / penalty));
}

at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale) {
  return unconditional + (conditional - unconditional) * scale;
}

std::vector<int64_t> most_likely(const at::Tensor& scores) {
  const at::Tensor columns = most_likely_columns(scores).cpu();
  const std::span host(columns.const_data_ptr<int64_t>(), static_cast<size_t>(columns.numel()));
  if (std::ranges::find(host, -1) != host.end()) fail_not_finite();
  return {host.begin(), host.end()};
}

at::Tensor candidate_weights(const at::Tensor& scores, double temperature, int64_t top_k, double min_p) {
  auto relative = scores - scores.amax(1, true);
  if (top_k > 0 && top_k < scores.size(1)) {
    const auto least = std::get<0>(relative.topk(top_k, 1, true, true)).narrow(1, top_k - 1, 1);
    relative = relative.masked_fill(relative < least, -std::numeric_limits<double>::infinity());
  }
  const at::Tensor weights = relative.div(temperature).exp().to(at::kFloat);
  return min_p > 0.0 ? weights.masked_fill(weights < min_p, 0.0) : weights;
}

int64_t draw(std::span<const float> weights, double top_p, double uniform) {
  const DescendingOrder order(weights);
  const double total = order.total();
  if (!(total > 0.0) || !std::isfinite(total)) fail_not_finite();
  const double mass = top_p > 0.0 && top_p < 1.0 ? order.find(top_p * total).mass : total;
  return order.find(uniform * mass).column;
}

at::Tensor most_likely_columns(const at::Tensor& scores) {
  const auto [value, column] = scores.max(1);
  return column.masked_fill(value.isfinite().logical_not(), -1);
}

at::Tensor draw_columns(const at::Tensor& weights, double top_p, const at::Tensor& uniforms) {
  const auto [falling, columns] = weights.sort(/*stable=*/true, 1, /*descending=*/true);
  const at::Tensor mass = falling.cumsum(1, at::kDouble), total = mass.narrow(1, mass.size(1) - 1, 1);
  const at::Tensor last = (falling > 0).sum(1, true) - 1;
  const auto find = [&, mass = mass](const at::Tensor& target) { return (mass < target).sum(1, true).minimum(last); };
  const bool cuts = top_p > 0.0 && top_p < 1.0;
  const at::Tensor kept = cuts ? mass.gather(1, find(total * top_p).clamp_min(0)) : total;
  const at::Tensor column = columns.gather(1, find(kept * uniforms.unsqueeze(1)).clamp_min(0));
  return column.masked_fill(total.isfinite().logical_and(total > 0).logical_not(), -1).squeeze(1);
}

}  // namespace carillon
