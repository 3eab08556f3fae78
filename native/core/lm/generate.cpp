#include "core/lm/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/lm/program.h"
#include "core/lm/run_ahead.h"
#include "core/lm/sampler.h"
#include "core/runtime/device.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

void check_ids(const std::vector<int32_t>& ids, const Vocabulary& vocabulary, const char* what) {
  for (const int32_t id : ids) {
    require(id >= 0 && id < vocabulary.size(), std::string(what) + " has token id " + std::to_string(id) +
                                                   ", but the vocabulary ends at " +
                                                   std::to_string(vocabulary.size() - 1));
  }
}

void check_segment(const Segment& segment, const Vocabulary& vocabulary) {
  if (const auto* tokens = std::get_if<TokensSegment>(&segment)) check_ids(tokens->ids, vocabulary, "a tokens segment");
  if (const auto* pattern = std::get_if<PatternSegment>(&segment)) {
    require(pattern->max_tokens > 0, "a pattern segment needs maxTokens of at least 1");
  }
  if (const auto* codes = std::get_if<CodesSegment>(&segment)) {
    require(codes->count.value_or(0) >= 0, "a codes segment needs a count of at least 0");
    require(vocabulary.code_count() > 0, "a codes segment was asked of a model without audio codes");
  }
}

void check_context(const LanguageJob& job, int64_t max_context_tokens) {
  const int64_t added = new_token_limit(job);
  const auto fits = [&](size_t prompt, const char* what) {
    require(static_cast<int64_t>(prompt) + added <= max_context_tokens,
            std::string("the ") + what + " of " + std::to_string(prompt) + " tokens and " + std::to_string(added) +
                " new tokens do not fit into the language model's " + std::to_string(max_context_tokens) +
                " positions: shorten the lyrics or caption, or the duration");
  };
  fits(job.prompt.size(), "prompt");
  if (job.cfg_scale > 1.0) fits(job.negative_prompt.size(), "negative prompt");
}

void check_sampling(const LanguageJob& job) {
  require(std::isfinite(job.temperature), "temperature must be a finite number");
  require(std::isfinite(job.top_p), "topP must be a finite number");
  require(std::isfinite(job.cfg_scale) && job.cfg_scale >= 1.0, "cfgScale must be at least 1 (1 is off)");
  require(std::isfinite(job.repetition_penalty) && job.repetition_penalty > 0.0, "repetitionPenalty must be above 0");
  require(job.cfg_scale == 1.0 || !job.negative_prompt.empty(), "cfgScale above 1 needs a negative prompt");
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kProgram:
      return "program";
    case FinishReason::kEndToken:
      return "end_token";
    case FinishReason::kLength:
      return "length";
  }
  return "program";
}

std::optional<int64_t> exact_length(const std::vector<Segment>& program) {
  int64_t length = 0;
  for (const auto& segment : program) {
    const auto* tokens = std::get_if<TokensSegment>(&segment);
    const auto* codes = std::get_if<CodesSegment>(&segment);
    if (tokens) {
      length += static_cast<int64_t>(tokens->ids.size());
    } else if (codes && codes->count) {
      length += *codes->count;
    } else {
      return std::nullopt;
    }
  }
  return length;
}

int64_t new_token_limit(const LanguageJob& job) {
  return std::min(job.max_new_tokens, exact_length(job.program).value_or(job.max_new_tokens));
}

void check_job(const LanguageJob& job, const Vocabulary& vocabulary, int64_t max_context_tokens) {
  require(!job.prompt.empty(), "the prompt is empty");
  require(!job.seeds.empty(), "the job has no seeds, so no rows");
  require(job.max_new_tokens > 0, "maxNewTokens must be at least 1");
  check_sampling(job);
  check_ids(job.prompt, vocabulary, "the prompt");
  check_ids(job.negative_prompt, vocabulary, "the negative prompt");
  for (const auto& segment : job.program) check_segment(segment, vocabulary);
  const int64_t needed = exact_length(job.program).value_or(0);
  require(needed <= job.max_new_tokens, "the program has " + std::to_string(needed) + " tokens, but maxNewTokens is " +
                                            std::to_string(job.max_new_tokens));
  check_context(job, max_context_tokens);
}

namespace {

constexpr int64_t kPrefillChunk = 512;
constexpr int64_t kWorthRunningAhead = 4;

struct Row {
  ProgramCursor cursor;
  uint64_t seed;
  size_t fed = 0;  // how many of cursor.ids() the model has seen

  size_t unfed() const { return cursor.ids().size() - fed; }
};

/// Hidden states of the rows that stand before a choice; unconditional ones only under guidance.
struct Hidden {
  std::vector<size_t> rows;
  at::Tensor conditional, unconditional;  // [rows.size(), H]
};

/// Logits of a window of ids, a line per row of Hidden.
struct Logits {
  int64_t first;
  at::Tensor conditional, unconditional;  // float32 [n, window]
};

class Generation {
 public:
  Generation(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
             const Control& control)
      : decoder_(decoder), vocabulary_(vocabulary), job_(job), control_(control), guided_(job.cfg_scale > 1.0) {
    for (const uint64_t seed : job.seeds) {
      rows_.push_back({ProgramCursor(job.program, job.max_new_tokens, vocabulary, masks), seed});
    }
  }

  LanguageResult run() {
    auto hidden = prefill();
    for (;;) {
      choose(hidden);
      report();
      if (!all_done()) run_ahead();
      if (all_done()) break;
      hidden = feed();
    }
    LanguageResult result;
    for (const auto& row : rows_) {
      result.token_ids.push_back(row.cursor.ids());
      result.finished.push_back(row.cursor.finished());
    }
    return result;
  }

 private:
  bool all_done() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.cursor.done(); });
  }

  /// Feeds the prompts once each and copies them to every row.
  Hidden prefill() {
    const auto count = static_cast<int64_t>(rows_.size());
    Hidden hidden;
    hidden.conditional = prefill(job_.prompt, 0, 0).expand({count, -1});
    if (guided_) hidden.unconditional = prefill(job_.negative_prompt, count, job_.prompt.size()).expand({count, -1});
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].unfed() == 0) hidden.rows.push_back(row);
    }
    return hidden;
  }

  at::Tensor prefill(const std::vector<int32_t>& prompt, int64_t row, size_t done) {
    const size_t total = job_.prompt.size() + (guided_ ? job_.negative_prompt.size() : 0);
    const auto ids = at::tensor(prompt, at::kInt).to(at::kLong).unsqueeze(0);
    at::Tensor hidden;
    for (int64_t begin = 0; begin < ids.size(1); begin += kPrefillChunk) {
      control_.report(Stage::kPrefill, static_cast<int64_t>(done) + begin, static_cast<int64_t>(total));
      hidden = decoder_.feed(ids.narrow(1, begin, std::min(kPrefillChunk, ids.size(1) - begin)), {row});
    }
    control_.report(Stage::kPrefill, static_cast<int64_t>(done) + ids.size(1), static_cast<int64_t>(total));
    for (size_t copy = 1; copy < rows_.size(); ++copy) decoder_.copy_row(row, row + static_cast<int64_t>(copy));
    return hidden;
  }

  /// Feeds every unfinished row as many ids as the row with the fewest has, so that rows whose
  /// programs differ stay in one batch and a forced run common to all takes one forward pass.
  Hidden feed() {
    std::vector<size_t> active;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (!rows_[row].cursor.done()) active.push_back(row);
    }
    size_t length = rows_[active.front()].unfed();
    for (const size_t row : active) length = std::min(length, rows_[row].unfed());

    std::vector<int64_t> cache_rows, ids;
    Hidden hidden;
    std::vector<int64_t> lines;  // of the batch, those that need logits
    for (const size_t index : active) {
      auto& row = rows_[index];
      const auto begin = row.cursor.ids().begin() + static_cast<int64_t>(row.fed);
      ids.insert(ids.end(), begin, begin + static_cast<int64_t>(length));
      row.fed += length;
      if (row.unfed() == 0) {
        hidden.rows.push_back(index);
        lines.push_back(static_cast<int64_t>(cache_rows.size()));
      }
      cache_rows.push_back(static_cast<int64_t>(index));
    }
    const auto count = static_cast<int64_t>(active.size());
    auto batch = at::tensor(ids, at::kLong).view({count, static_cast<int64_t>(length)});
    if (guided_) {
      batch = at::cat({batch, batch});
      for (const size_t row : active) cache_rows.push_back(static_cast<int64_t>(row + rows_.size()));
    }
    const auto last = decoder_.feed(batch, cache_rows);
    hidden.conditional = lines_of(last.narrow(0, 0, count), lines);
    if (guided_) hidden.unconditional = lines_of(last.narrow(0, count, count), lines);
    return hidden;
  }

  /// The lines [n, ...] of x; x itself where that is all of them.
  static at::Tensor lines_of(const at::Tensor& x, const std::vector<int64_t>& lines) {
    if (static_cast<int64_t>(lines.size()) == x.size(0)) return x;
    return x.index_select(0, upload(at::tensor(lines, at::kLong), x.device()));
  }

  /// While every row chooses from one mask, be it the codes or all of text, the device goes on by itself.
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
      steps = std::min(steps, cursor.alike_choices());
    }
    if (steps < kWorthRunningAhead) return;
    RunAhead ahead(device->model, device->cache, job_, *mask, ahead_rows, steps);
    for (int64_t step = 0; step < steps && !all_done(); ++step) {
      take(ahead.next(), device->cache);
      report();
    }
  }

  /// One id for each row, those of rows that are done to be ignored.
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

  /// Decides the boundaries and makes the choices of the rows whose hidden states are given.
  void choose(const Hidden& hidden) {
    if (hidden.rows.empty() || rows_[hidden.rows.front()].cursor.done()) return;
    const auto logits = window_logits(hidden);
    decide_boundaries(hidden, logits);
    // Rows under the same mask are one group: in the codes phase, all of them.
    std::map<std::pair<const TokenMask*, bool>, std::vector<int64_t>> groups;
    for (size_t line = 0; line < hidden.rows.size(); ++line) {
      const auto& row = rows_[hidden.rows[line]];
      if (row.cursor.done() || row.unfed() > 0) continue;
      groups[{&row.cursor.mask(), row.cursor.greedy()}].push_back(static_cast<int64_t>(line));
    }
    for (const auto& [key, lines] : groups) choose_group(hidden, logits, *key.first, key.second, lines);
  }

  /// The narrowest run of ids that holds every mask; a boundary needs all ids.
  Logits window_logits(const Hidden& hidden) {
    int64_t first = vocabulary_.size(), last = 0;
    for (const size_t index : hidden.rows) {
      const auto& cursor = rows_[index].cursor;
      first = std::min(first, cursor.at_boundary() ? 0 : cursor.mask().first);
      last = std::max(last, cursor.at_boundary() ? int64_t{vocabulary_.size()} - 1 : cursor.mask().last);
    }
    const int64_t width = last - first + 1;
    if (!guided_) return {first, decoder_.logits(hidden.conditional, first, width), {}};
    const auto both = decoder_.logits(at::cat({hidden.conditional, hidden.unconditional}), first, width);
    const auto count = static_cast<int64_t>(hidden.rows.size());
    return {first, both.narrow(0, 0, count), both.narrow(0, count, count)};
  }

  /// The segment after a boundary may itself begin with one; the same logits serve it.
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
    const auto weights = candidate_weights(scores, job_.temperature, job_.top_k).cpu().contiguous();
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

  void report() const {
    size_t done = 0;
    for (const auto& row : rows_) done = std::max(done, row.cursor.ids().size());
    control_.report(job_.stage, static_cast<int64_t>(done), exact_length(job_.program).value_or(0));
  }

  Decoder& decoder_;
  const Vocabulary& vocabulary_;
  const LanguageJob& job_;
  const Control& control_;
  const bool guided_;
  std::vector<Row> rows_;
};

}  // namespace

LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control) {
  return Generation(decoder, vocabulary, masks, job, control).run();
}

LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control) {
  if (vocabulary.size() > model.config().vocab_size) {
    fail(ErrorCode::kBadArgument, "the tokenizer has " + std::to_string(vocabulary.size()) +
                                      " tokens, but the language model " + std::to_string(model.config().vocab_size) +
                                      ": they do not belong together");
  }
  check_job(job, vocabulary, max_context_tokens);
  const auto prompt = static_cast<int64_t>(std::max(job.prompt.size(), job.negative_prompt.size()));
  const auto rows = static_cast<int64_t>(job.seeds.size()) * (job.cfg_scale > 1.0 ? 2 : 1);
  const auto decoder = make_decoder(model, rows, prompt + new_token_limit(job));
  return generate(*decoder, vocabulary, masks, job, control);
}

}  // namespace carillon
