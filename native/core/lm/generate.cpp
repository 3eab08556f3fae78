#include "core/lm/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/lm/program.h"
#include "core/lm/run_ahead.h"
#include "core/lm/sampler.h"
#include "core/runtime/device.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

constexpr int64_t kPrefillChunk = 512;
constexpr int64_t kWorthRunningAhead = 4;

struct Row {
  const LanguageJob& job;
  ProgramCursor cursor;
  uint64_t seed;
  size_t fed = 0;  // number of cursor.ids() that the model has processed

  size_t unfed() const { return cursor.ids().size() - fed; }
};

/// Hidden states of the rows that choose next; unconditional ones only with guidance.
struct Hidden {
  std::vector<size_t> rows;
  at::Tensor conditional, unconditional;  // [rows.size(), H]
};

/// Logits of a window of ids, one line per row of Hidden.
struct Logits {
  int64_t first;
  at::Tensor conditional, unconditional;  // float32 [n, window]
};

/// First and last id.
using Window = std::pair<int64_t, int64_t>;

class Generation {
 public:
  Generation(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, std::span<const LanguageJob> jobs,
             const Control& control)
      : decoder_(decoder),
        vocabulary_(vocabulary),
        jobs_(jobs),
        job_(jobs.front()),
        control_(control),
        guided_(job_.cfg_scale > 1.0) {
    for (const LanguageJob& job : jobs) {
      for (const uint64_t seed : job.seeds) {
        rows_.push_back({job, ProgramCursor(job.program, job.max_new_tokens, vocabulary, masks), seed});
      }
    }
  }

  std::vector<LanguageResult> run() {
    auto hidden = prefill();
    for (;;) {
      choose(hidden);
      report();
      if (!all_done()) run_ahead();
      if (all_done()) break;
      hidden = feed();
    }
    std::vector<LanguageResult> results(jobs_.size());
    for (const auto& row : rows_) {
      LanguageResult& result = results[static_cast<size_t>(&row.job - jobs_.data())];
      result.token_ids.push_back(row.cursor.ids());
      result.finished.push_back(row.cursor.finished());
    }
    return results;
  }

 private:
  bool all_done() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.cursor.done(); });
  }

  /// Prompts of all rows of the cache: conditional ones, then with guidance unconditional ones.
  std::vector<const std::vector<int32_t>*> prompts() const {
    std::vector<const std::vector<int32_t>*> all;
    for (const Row& row : rows_) all.push_back(&row.job.prompt);
    for (size_t row = 0; guided_ && row < rows_.size(); ++row) all.push_back(&rows_[row].job.negative_prompt);
    return all;
  }

  /// Feeds each distinct prompt once, alone, and copies its cache row to the other rows with that prompt.
  Hidden prefill() {
    const auto of_row = prompts();
    std::vector<size_t> source(of_row.size());
    int64_t total = 0, done = 0;
    for (size_t row = 0; row < of_row.size(); ++row) {
      const auto same = [&](const std::vector<int32_t>* prompt) { return *prompt == *of_row[row]; };
      source[row] = static_cast<size_t>(std::find_if(of_row.begin(), of_row.end(), same) - of_row.begin());
      if (source[row] == row) total += static_cast<int64_t>(of_row[row]->size());
    }
    std::vector<at::Tensor> last(of_row.size());
    for (size_t row = 0; row < of_row.size(); ++row) {
      const auto line = static_cast<int64_t>(row);
      if (source[row] == row) {
        last[row] = prefill(*of_row[row], line, done, total);
        done += static_cast<int64_t>(of_row[row]->size());
      } else {
        decoder_.copy_row(static_cast<int64_t>(source[row]), line);
        last[row] = last[source[row]];
      }
    }
    Hidden hidden;
    const auto middle = last.begin() + static_cast<std::ptrdiff_t>(rows_.size());
    hidden.conditional = at::cat(std::vector<at::Tensor>(last.begin(), middle));
    if (guided_) hidden.unconditional = at::cat(std::vector<at::Tensor>(middle, last.end()));
    std::vector<int64_t> lines;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].unfed() > 0 || rows_[row].cursor.done()) continue;
      hidden.rows.push_back(row);
      lines.push_back(static_cast<int64_t>(row));
    }
    return {hidden.rows, lines_of(hidden.conditional, lines),
            guided_ ? lines_of(hidden.unconditional, lines) : at::Tensor()};
  }

  at::Tensor prefill(const std::vector<int32_t>& prompt, int64_t row, int64_t done, int64_t total) {
    const auto ids = at::tensor(prompt, at::kInt).to(at::kLong).unsqueeze(0);
    at::Tensor hidden;
    for (int64_t begin = 0; begin < ids.size(1); begin += kPrefillChunk) {
      control_.report(Stage::kPrefill, done + begin, total);
      hidden = decoder_.feed(ids.narrow(1, begin, std::min(kPrefillChunk, ids.size(1) - begin)), {row});
    }
    control_.report(Stage::kPrefill, done + ids.size(1), total);
    return hidden;
  }

  /// Feeds the new ids of each unfinished row: single ids in one pass for all rows, which reads each weight once. A row
  /// with a forced run gets its own pass, so that its rounding does not depend on the other rows.
  Hidden feed() {
    std::vector<size_t> single;
    std::vector<Hidden> parts;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].cursor.done()) continue;
      if (rows_[row].unfed() == 1) {
        single.push_back(row);
      } else {
        parts.push_back(feed({row}));
      }
    }
    if (!single.empty()) parts.push_back(feed(single));
    if (parts.size() == 1) return parts.front();
    Hidden all;
    std::vector<at::Tensor> conditional, unconditional;
    for (const Hidden& part : parts) {
      all.rows.insert(all.rows.end(), part.rows.begin(), part.rows.end());
      conditional.push_back(part.conditional);
      if (guided_) unconditional.push_back(part.unconditional);
    }
    all.conditional = at::cat(conditional);
    if (guided_) all.unconditional = at::cat(unconditional);
    return all;
  }

  /// Feeds rows with equal numbers of unfed ids.
  Hidden feed(const std::vector<size_t>& rows) {
    const size_t length = rows_[rows.front()].unfed();
    std::vector<int64_t> cache_rows, ids;
    for (const size_t index : rows) {
      auto& row = rows_[index];
      ids.insert(ids.end(), row.cursor.ids().begin() + static_cast<int64_t>(row.fed), row.cursor.ids().end());
      row.fed += length;
      cache_rows.push_back(static_cast<int64_t>(index));
    }
    const auto count = static_cast<int64_t>(rows.size());
    auto batch = at::tensor(ids, at::kLong).view({count, static_cast<int64_t>(length)});
    if (guided_) {
      batch = at::cat({batch, batch});
      for (const size_t row : rows) cache_rows.push_back(static_cast<int64_t>(row + rows_.size()));
    }
    const auto last = decoder_.feed(batch, cache_rows);
    return {rows, last.narrow(0, 0, count), guided_ ? last.narrow(0, count, count) : at::Tensor()};
  }

  /// Lines [n, ...] of x; x itself for all lines.
  static at::Tensor lines_of(const at::Tensor& x, const std::vector<int64_t>& lines) {
    if (static_cast<int64_t>(lines.size()) == x.size(0)) return x;
    return x.index_select(0, upload(at::tensor(lines, at::kLong), x.device()));
  }

  /// Lets the device choose several tokens ahead while all rows use the same mask (audio codes, or all text).
  void run_ahead() {
    const auto device = decoder_.on_device();
    if (!device) return;
    const TokenMask* mask = nullptr;
    int64_t steps = std::numeric_limits<int64_t>::max();
    std::vector<AheadRow> ahead_rows;
    for (const Row& row : rows_) {
      const auto& cursor = row.cursor;
      ahead_rows.push_back({cursor.done() ? 0 : cursor.ids().back(), row.seed, cursor.ids()});
      if (cursor.done()) continue;
      if (row.unfed() != 1 || cursor.at_boundary() || (mask != nullptr && mask != &cursor.mask())) return;
      mask = &cursor.mask();
      steps = std::min(steps, cursor.choices_from_same_mask());
    }
    if (steps < kWorthRunningAhead) return;
    RunAhead ahead(device->model, device->cache, job_, *mask, ahead_rows, steps);
    for (int64_t step = 0; step < steps && !all_done(); ++step) {
      take(ahead.next(), device->cache);
      report();
    }
  }

  /// Appends one id to each row; finished rows ignore theirs.
  void take(const std::vector<int64_t>& ids, KvCache& cache) {
    for (size_t index = 0; index < rows_.size(); ++index) {
      Row& row = rows_[index];
      if (row.cursor.done()) continue;
      row.cursor.push(static_cast<int32_t>(ids[index]));
      ++row.fed;
      cache.extend(static_cast<int64_t>(index), 1);
      if (guided_) cache.extend(static_cast<int64_t>(index + rows_.size()), 1);
    }
  }

  /// Chooses the next id, or decides the boundary, of the rows of `hidden`.
  void choose(const Hidden& hidden) {
    if (hidden.rows.empty()) return;
    for (const auto& [window, lines] : by_window(hidden)) {
      std::vector<size_t> rows;
      for (const int64_t line : lines) rows.push_back(hidden.rows[static_cast<size_t>(line)]);
      choose_within(window, {rows, lines_of(hidden.conditional, lines),
                             guided_ ? lines_of(hidden.unconditional, lines) : at::Tensor()});
    }
  }

  /// Hidden states grouped by the range of token ids that may follow them: only these logits are computed. On a GPU one
  /// range for all is faster.
  std::map<Window, std::vector<int64_t>> by_window(const Hidden& hidden) const {
    std::map<Window, std::vector<int64_t>> groups;
    for (size_t line = 0; line < hidden.rows.size(); ++line) {
      groups[window_of(rows_[hidden.rows[line]].cursor)].push_back(static_cast<int64_t>(line));
    }
    if (!hidden.conditional.is_cuda() || groups.size() == 1) return groups;
    Window all = groups.begin()->first;
    std::vector<int64_t> lines(hidden.rows.size());
    std::iota(lines.begin(), lines.end(), 0);
    for (const auto& group : groups) all.second = std::max(all.second, group.first.second);
    return {{all, lines}};
  }

  /// Smallest range of ids that contains the mask; a boundary needs all ids.
  Window window_of(const ProgramCursor& cursor) const {
    if (cursor.at_boundary()) return {0, int64_t{vocabulary_.size()} - 1};
    return {cursor.mask().first, cursor.mask().last};
  }

  void choose_within(const Window& window, const Hidden& hidden) {
    const auto logits = window_logits(window, hidden);
    decide_boundaries(hidden, logits);
    // Groups rows with the same mask; in the codes phase all rows are one group.
    std::map<std::pair<const TokenMask*, bool>, std::vector<int64_t>> groups;
    for (size_t line = 0; line < hidden.rows.size(); ++line) {
      const auto& row = rows_[hidden.rows[line]];
      if (row.cursor.done() || row.unfed() > 0) continue;
      groups[{&row.cursor.mask(), row.cursor.greedy()}].push_back(static_cast<int64_t>(line));
    }
    for (const auto& [key, lines] : groups) choose_group(hidden, logits, *key.first, key.second, lines);
  }

  Logits window_logits(const Window& window, const Hidden& hidden) {
    const int64_t first = window.first, width = window.second - first + 1;
    if (!guided_) return {first, decoder_.logits(hidden.conditional, first, width), {}};
    const auto both = decoder_.logits(at::cat({hidden.conditional, hidden.unconditional}), first, width);
    const auto count = static_cast<int64_t>(hidden.rows.size());
    return {first, both.narrow(0, 0, count), both.narrow(0, count, count)};
  }

  /// The segment after a boundary may begin with another boundary, which uses the same logits.
  void decide_boundaries(const Hidden& hidden, const Logits& logits) {
    for (size_t line = 0; line < hidden.rows.size(); ++line) {
      auto& cursor = rows_[hidden.rows[line]].cursor;
      if (!cursor.at_boundary()) continue;
      const auto best = most_likely(logits.conditional.narrow(0, static_cast<int64_t>(line), 1)).front();
      while (!cursor.done() && cursor.at_boundary() && rows_[hidden.rows[line]].unfed() == 0) {
        cursor.decide(static_cast<int32_t>(best));
      }
    }
  }

  void choose_group(const Hidden& hidden, const Logits& logits, const TokenMask& mask, bool greedy,
                    const std::vector<int64_t>& lines) {
    const auto conditional = lines_of(logits.conditional, lines);
    const auto chosen = [&](size_t i) -> Row& { return rows_[hidden.rows[static_cast<size_t>(lines[i])]]; };
    if (!greedy && job_.repetition_penalty != 1.0) {
      for (size_t i = 0; i < lines.size(); ++i) {
        penalize(conditional[static_cast<int64_t>(i)], logits.first, chosen(i).cursor.ids(), job_.repetition_penalty);
      }
    }
    auto scores = mask.columns(conditional, logits.first);
    if (!greedy && guided_) {
      scores = guide(scores, mask.columns(lines_of(logits.unconditional, lines), logits.first), job_.cfg_scale);
    }
    scores = mask.block(scores);
    const auto columns = greedy || job_.temperature < kMinTemperature ? most_likely(scores) : sample(scores, chosen);
    for (size_t i = 0; i < lines.size(); ++i) chosen(i).cursor.push(static_cast<int32_t>(mask.id(columns[i])));
  }

  template <class RowAt>
  std::vector<int64_t> sample(const at::Tensor& scores, const RowAt& row_at) {
    const at::Tensor weights = weights_of(scores).cpu().contiguous();
    const auto width = static_cast<size_t>(weights.size(1));
    std::vector<int64_t> columns;
    for (size_t i = 0; i < static_cast<size_t>(weights.size(0)); ++i) {
      const std::span<const float> row(weights.const_data_ptr<float>() + i * width, width);
      const double uniform =
          uniform_draw(row_at(i).seed, static_cast<uint32_t>(job_.stage), row_at(i).cursor.ids().size());
      columns.push_back(draw(row, job_.top_p, uniform));
    }
    return columns;
  }

  /// On the CPU row by row, because libtorch rounds exponentials differently at the ends of its work ranges, which
  /// depend on the number of rows.
  at::Tensor weights_of(const at::Tensor& scores) const {
    const auto weigh = [&](const at::Tensor& rows) {
      return candidate_weights(rows, job_.temperature, job_.top_k, job_.min_p);
    };
    if (scores.is_cuda() || scores.size(0) == 1) return weigh(scores);
    std::vector<at::Tensor> rows;
    for (const at::Tensor& row : scores.split(1)) rows.push_back(weigh(row));
    return at::cat(rows);
  }

  void report() const {
    size_t done = 0;
    int64_t total = 0;
    bool is_open = false;
    for (const auto& row : rows_) {
      done = std::max(done, row.cursor.ids().size());
      const auto length = exact_length(row.job.program);
      is_open |= !length;
      total = std::max(total, length.value_or(0));
    }
    control_.report(job_.stage, static_cast<int64_t>(done), is_open ? 0 : total);
  }

  Decoder& decoder_;
  const Vocabulary& vocabulary_;
  const std::span<const LanguageJob> jobs_;
  const LanguageJob& job_;  // the first; its sampling options hold for all
  const Control& control_;
  const bool guided_;
  std::vector<Row> rows_;
};

}  // namespace

void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes) {
  if (rows * row_bytes <= free_bytes) return;
  const auto gigabytes = [](int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
    return std::string(text);
  };
  const int64_t songs = rows / rows_per_song, fitting = free_bytes / (row_bytes * rows_per_song);
  fail(ErrorCode::kOutOfMemory,
       "planning " + std::to_string(songs) + (songs == 1 ? " song" : " songs") + " takes " +
           gigabytes(rows * row_bytes) + " for keys and values, but " + gigabytes(free_bytes) + " are free: " +
           (fitting > 0 ? "SVC_BATCH_MAX=" + std::to_string(fitting) + " fits"
                        : std::string("shorten the song or the lyrics")));
}

std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, const Control& control) {
  return Generation(decoder, vocabulary, masks, jobs, control).run();
}

LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control) {
  return generate(decoder, vocabulary, masks, std::span(&job, 1), control).front();
}

std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                     const Control& control) {
  if (vocabulary.size() > model.config().vocab_size) {
    fail(ErrorCode::kBadArgument, "the tokenizer has " + std::to_string(vocabulary.size()) +
                                      " tokens, but the language model " + std::to_string(model.config().vocab_size) +
                                      ": tokenizer and model do not match");
  }
  require(!jobs.empty(), "the batch has no jobs");
  int64_t songs = 0;
  for (const LanguageJob& job : jobs) {
    check_job(job, vocabulary, max_context_tokens);
    songs += static_cast<int64_t>(job.seeds.size());
  }
  check_same_sampling(jobs);
  const int64_t rows_per_song = jobs.front().cfg_scale > 1.0 ? 2 : 1, tokens = longest_row(jobs);
  check_cache(songs * rows_per_song, rows_per_song, tokens * model.cache_bytes_per_token(),
              available_memory(model.placement().device));
  const auto decoder = make_decoder(model, songs * rows_per_song, tokens);
  return generate(*decoder, vocabulary, masks, jobs, control);
}

LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control) {
  return generate(model, vocabulary, masks, std::span(&job, 1), max_context_tokens, control).front();
}

}  // namespace carillon
