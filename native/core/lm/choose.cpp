#include "core/lm/choose.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "core/lm/sampler.h"
#include "core/runtime/device.h"

namespace carillon {
namespace {

/// Selects the rows `lines` of x [n, ...]; returns x itself if all rows are selected.
at::Tensor lines_of(const at::Tensor& x, const std::vector<int64_t>& lines) {
  if (static_cast<int64_t>(lines.size()) == x.size(0)) return x;
  return x.index_select(0, upload(at::tensor(lines, at::kLong), x.device()));
}

}  // namespace

HiddenStates HiddenStates::of(const std::vector<int64_t>& lines) const {
  HiddenStates some;
  for (const int64_t line : lines) some.rows.push_back(rows[static_cast<size_t>(line)]);
  some.conditional = lines_of(conditional, lines);
  if (unconditional.defined()) some.unconditional = lines_of(unconditional, lines);
  return some;
}

void TokenChooser::choose(const HiddenStates& hidden) {
  if (hidden.rows.empty()) return;
  for (const auto& [window, lines] : by_window(hidden)) choose_within(window, hidden.of(lines));
}

/// Groups hidden states by the range of token ids that may follow. Only the logits of this range are then computed. On
/// a GPU all rows use one common range, which is faster.
std::map<TokenChooser::Window, std::vector<int64_t>> TokenChooser::by_window(const HiddenStates& hidden) const {
  std::map<Window, std::vector<int64_t>> groups;
  for (size_t line = 0; line < hidden.rows.size(); ++line) {
    groups[window_of(hidden.rows[line]->cursor)].push_back(static_cast<int64_t>(line));
  }
  if (!hidden.conditional.is_cuda() || groups.size() == 1) return groups;
  Window all = groups.begin()->first;
  std::vector<int64_t> lines(hidden.rows.size());
  std::iota(lines.begin(), lines.end(), 0);
  for (const auto& group : groups) all.second = std::max(all.second, group.first.second);
  return {{all, lines}};
}

/// Smallest range that contains all ids that the row may take next. At a boundary (program.h) it contains all ids.
TokenChooser::Window TokenChooser::window_of(const ProgramCursor& cursor) const {
  if (cursor.at_boundary()) return {0, int64_t{vocabulary_.size()} - 1};
  return {cursor.mask().first, cursor.mask().last};
}

void TokenChooser::choose_within(const Window& window, const HiddenStates& hidden) {
  const auto logits = window_logits(window, hidden);
  decide_boundaries(hidden, logits);
  // Rows with the same mask form a group. In the codes phase all rows have the same mask.
  std::map<std::pair<const TokenMask*, bool>, std::vector<int64_t>> groups;
  for (size_t line = 0; line < hidden.rows.size(); ++line) {
    const BatchRow& row = *hidden.rows[line];
    if (row.cursor.done() || row.unfed() > 0) continue;
    groups[{&row.cursor.mask(), row.cursor.greedy()}].push_back(static_cast<int64_t>(line));
  }
  for (const auto& [key, lines] : groups) choose_group(hidden, logits, *key.first, key.second, lines);
}

Logits TokenChooser::window_logits(const Window& window, const HiddenStates& hidden) {
  const int64_t first = window.first, width = window.second - first + 1;
  if (!guided_) return {first, decoder_.logits(hidden.conditional, first, width), {}};
  const auto both = decoder_.logits(at::cat({hidden.conditional, hidden.unconditional}), first, width);
  const auto count = static_cast<int64_t>(hidden.rows.size());
  return {first, both.narrow(0, 0, count), both.narrow(0, count, count)};
}

/// Decides for each row at a boundary whether its pattern continues. If the next segment also begins with a boundary,
/// the same logits decide it, too.
void TokenChooser::decide_boundaries(const HiddenStates& hidden, const Logits& logits) {
  for (size_t line = 0; line < hidden.rows.size(); ++line) {
    BatchRow& row = *hidden.rows[line];
    if (!row.cursor.at_boundary()) continue;
    const auto best = most_likely(logits.conditional.narrow(0, static_cast<int64_t>(line), 1)).front();
    while (!row.cursor.done() && row.cursor.at_boundary() && row.unfed() == 0) {
      row.cursor.decide(static_cast<int32_t>(best));
    }
  }
}

void TokenChooser::choose_group(const HiddenStates& hidden, const Logits& logits, const TokenMask& mask, bool greedy,
                                const std::vector<int64_t>& lines) {
  const auto conditional = lines_of(logits.conditional, lines);
  std::vector<BatchRow*> rows;
  for (const int64_t line : lines) rows.push_back(hidden.rows[static_cast<size_t>(line)]);
  if (!greedy && options_.repetition_penalty != 1.0) {
    for (size_t i = 0; i < rows.size(); ++i) {
      penalize(conditional[static_cast<int64_t>(i)], logits.first, rows[i]->cursor.ids(), options_.repetition_penalty);
    }
  }
  auto scores = mask.columns(conditional, logits.first);
  if (!greedy && guided_) {
    scores = guide(scores, mask.columns(lines_of(logits.unconditional, lines), logits.first), options_.cfg_scale);
  }
  scores = mask.block(scores);
  const auto columns = greedy || options_.temperature < kMinTemperature ? most_likely(scores) : sample(scores, rows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i]->cursor.push(static_cast<int32_t>(mask.id(columns[i])));
}

std::vector<int64_t> TokenChooser::sample(const at::Tensor& scores, const std::vector<BatchRow*>& rows) const {
  const at::Tensor weights = weights_of(scores).cpu().contiguous();
  const auto width = static_cast<size_t>(weights.size(1));
  std::vector<int64_t> columns;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> row(weights.const_data_ptr<float>() + i * width, width);
    const double uniform =
        uniform_draw(rows[i]->job.seed, static_cast<uint32_t>(options_.stage), rows[i]->cursor.ids().size());
    columns.push_back(draw(row, options_.top_p, uniform));
  }
  return columns;
}

/// Computes each row separately on the CPU. libtorch rounds exponentials differently at the ends of its work ranges,
/// and these ends depend on the number of rows.
at::Tensor TokenChooser::weights_of(const at::Tensor& scores) const {
  const auto weigh = [&](const at::Tensor& rows) {
    return candidate_weights(rows, options_.temperature, options_.top_k, options_.min_p);
  };
  if (scores.is_cuda() || scores.size(0) == 1) return weigh(scores);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& row : scores.split(1)) rows.push_back(weigh(row));
  return at::cat(rows);
}

}  // namespace carillon
