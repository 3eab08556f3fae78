#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/lm/decoder.h"
#include "core/lm/language_job.h"
#include "core/lm/program.h"
#include "core/lm/vocabulary.h"

namespace carillon {

/// The token sequence of a job in a batch.
struct BatchRow {
  const LanguageJob& job;
  ProgramCursor cursor;
  int64_t cache_row;
  size_t fed = 0;  // number of cursor.ids() that the model has processed

  size_t unfed() const { return cursor.ids().size() - fed; }
};

/// Hidden states for choosing the next token of each row: the states at the row's last token. Unconditional states
/// exist only with guidance.
struct HiddenStates {
  std::vector<BatchRow*> rows;
  at::Tensor conditional, unconditional;  // [rows.size(), H]

  /// Returns the hidden states of the rows with these indices in `rows`.
  HiddenStates of(const std::vector<int64_t>& lines) const;
};

/// Logits of a range of token ids, one line per row of HiddenStates.
struct Logits {
  int64_t first;
  at::Tensor conditional, unconditional;  // float32 [n, window]
};

/// Chooses the next token of each row from hidden states. The constructor's arguments must outlive the chooser.
class TokenChooser {
 public:
  /// `options` is a job. Its stage and sampling options apply to all rows.
  TokenChooser(Decoder& decoder, const Vocabulary& vocabulary, const LanguageJob& options)
      : decoder_(decoder), vocabulary_(vocabulary), options_(options), guided_(options.cfg_scale > 1.0) {}

  /// Appends the next id to each row. At a boundary (program.h) first decides whether the pattern continues. Throws
  /// kNotFinite.
  void choose(const HiddenStates& hidden);

 private:
  /// A range of token ids: first and last.
  using Window = std::pair<int64_t, int64_t>;

  std::map<Window, std::vector<int64_t>> by_window(const HiddenStates& hidden) const;
  Window window_of(const ProgramCursor& cursor) const;
  void choose_within(const Window& window, const HiddenStates& hidden);
  Logits window_logits(const Window& window, const HiddenStates& hidden);
  void decide_boundaries(const HiddenStates& hidden, const Logits& logits);
  void choose_group(const HiddenStates& hidden, const Logits& logits, const TokenMask& mask, bool greedy,
                    const std::vector<int64_t>& lines);
  std::vector<int64_t> sample(const at::Tensor& scores, const std::vector<BatchRow*>& rows) const;
  at::Tensor weights_of(const at::Tensor& scores) const;

  Decoder& decoder_;
  const Vocabulary& vocabulary_;
  const LanguageJob& options_;
  const bool guided_;
};

}  // namespace carillon
