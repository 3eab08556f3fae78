#include "core/tasks/lyric_times.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace carillon {
namespace {

/// Attention weights below this many times the median of their row or column are ignored.
constexpr double kTimesMedian = 2.0;

/// Normalises the attention weights of a head. Sets weights to 0 unless they exceed kTimesMedian times the medians of
/// their row and their column.
at::Tensor salient_weights(const at::Tensor& weights) {
  at::Tensor kept = weights.softmax(1) * weights.softmax(0);
  for (const int64_t along : {1, 0}) {
    kept = (kept - kTimesMedian * std::get<0>(kept.median(along, /*keepdim=*/true))).relu();
  }
  return kept.square();
}

/// Dynamic time warping: finds the path with the highest sum from the first to the last element of `gain` [rows,
/// columns]. Each step of the path advances by one row, one column or both. Returns one column per row: the first one
/// on the path whose gain is positive, or else the first one on the path.
std::vector<int64_t> first_columns(const at::Tensor& gain) {
  enum Move : uint8_t { kBoth, kRow, kColumn };
  const int64_t rows = gain.size(0), columns = gain.size(1);
  const float* const gains = gain.const_data_ptr<float>();
  std::vector<uint8_t> moves(static_cast<size_t>(rows * columns));
  constexpr double kNowhere = -std::numeric_limits<double>::infinity();
  // `above` and `here` hold the highest path sum for each cell of the previous and of the current row. Element 0 is a
  // border left of the first column, where paths start.
  std::vector<double> above(static_cast<size_t>(columns) + 1, kNowhere), here(above.size());
  above[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    here[0] = kNowhere;
    for (int64_t column = 0; column < columns; ++column) {
      const auto at = static_cast<size_t>(column);
      const double by_both = above[at], by_row = above[at + 1], by_column = here[at];
      const double best = std::max({by_both, by_row, by_column});
      const int64_t place = row * columns + column;
      moves[static_cast<size_t>(place)] = best == by_column ? kColumn : best == by_both ? kBoth : kRow;
      here[at + 1] = best + static_cast<double>(gains[place]);
    }
    std::swap(above, here);
  }
  std::vector<int64_t> first(static_cast<size_t>(rows));
  std::vector<bool> gained(first.size());
  for (int64_t row = rows - 1, column = columns - 1; row >= 0 && column >= 0;) {
    const int64_t place = row * columns + column;
    const bool gains_here = gains[place] > 0;
    const auto of_row = static_cast<size_t>(row);
    if (gains_here || !gained[of_row]) first[of_row] = column;
    gained[of_row] = gained[of_row] || gains_here;
    const uint8_t move = moves[static_cast<size_t>(place)];
    if (move != kColumn) --row;
    if (move != kRow) --column;
  }
  return first;
}

}  // namespace

void LyricAlignment::add_head(const at::Tensor& weights) {
  const at::Tensor kept = salient_weights(weights);
  sum_ = sum_.defined() ? sum_ + kept : kept;
  total_ += kept.sum(at::kDouble).item<double>();
  total_of_squares_ += kept.square().sum(at::kDouble).item<double>();
  ++heads_;
}

std::vector<int64_t> LyricAlignment::first_patches() const {
  if (total_ == 0) return {};
  const double count = heads_ * static_cast<double>(sum_.numel()), mean = total_ / count;
  const double deviation = std::sqrt(std::max(0.0, total_of_squares_ / count - mean * mean));
  constexpr double kLeastDeviation = 1e-9;
  return first_columns(((sum_ / heads_ - mean) / (deviation + kLeastDeviation)).to(at::kCPU).contiguous());
}

std::vector<int64_t> sung_patches(const AceStep& model, const at::Tensor& latents, const at::Tensor& noise,
                                  const Conditions& conditions, const LyricSpan& lyrics, int steps, int64_t patches,
                                  const Control& control) {
  const double time = 1.0 / steps;
  const at::Tensor state = (time * noise + (1.0 - time) * latents).to(model.placement.dtype);
  const at::Tensor times = at::full({1}, time, latents.options());
  LyricAlignment alignment;
  model.dit.visit_attention(model.config.lyric_heads, state, model.dit.embed_context(conditions.context),
                  model.dit.modulate(times), model.dit.make_cross_cache(conditions.encoder_states),
                  [&](const at::Tensor& weights) {
                    control.check();
                    alignment.add_head(weights[0].narrow(1, lyrics.first, lyrics.count).narrow(0, 0, patches).t());
                  });
  return alignment.first_patches();
}

}  // namespace carillon
