#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/lm/generate.h"
#include "core/lm/vocabulary.h"

namespace carillon {

/// Executes a job's program for one row. It stands either at a choice among `mask()`, or at a
/// boundary (a pattern that is complete but could go on), or it is done. Ids that leave no choice are
/// appended without asking: token segments, states with one allowed token, the way out of a pattern
/// that used up its tokens. The program, vocabulary and cache must outlive it.
class ProgramCursor {
 public:
  ProgramCursor(const std::vector<Segment>& program, int64_t max_new_tokens, const Vocabulary& vocabulary,
                MaskCache& cache);

  bool done() const { return finished_.has_value(); }
  FinishReason finished() const { return *finished_; }

  /// Every new id, chosen or forced; the end token is not among them.
  const std::vector<int32_t>& ids() const { return ids_; }

  bool at_boundary() const { return at_boundary_; }
  /// At a boundary: the most likely of all ids decides. Where the pattern allows it, the pattern goes
  /// on and a choice follows; otherwise the segment ends.
  void decide(int32_t most_likely);

  /// At a choice: what is allowed, and whether the most likely of it is taken instead of a sample.
  const TokenMask& mask() const { return *mask_; }
  bool greedy() const { return greedy_; }
  /// At a choice: at least so many, unless an end token comes, are made from the same mask, this one included.
  int64_t alike_choices() const;
  /// At a choice: takes an id of `mask()`.
  void push(int32_t id);

 private:
  // Each goes on with its segment as far as no choice is needed; true: a choice or decision is.
  bool advance(const TokensSegment& segment);
  bool advance(const PatternSegment& segment);
  bool advance(const CodesSegment& segment);
  bool advance(const TextSegment& segment);
  bool advance(const FreeSegment& segment);
  void settle();
  bool choose_from(const TokenMask& mask);
  void append(int32_t id);
  void append(std::span<const int32_t> ids);
  bool next_segment();

  const std::vector<Segment>& program_;
  const int64_t max_new_tokens_;
  const Vocabulary& vocabulary_;
  MaskCache& cache_;

  std::vector<int32_t> ids_;
  std::optional<FinishReason> finished_;
  size_t segment_ = 0;
  int64_t used_ = 0;                     // tokens of the current segment
  std::shared_ptr<PatternMasks> masks_;  // of the current segment when it is a pattern
  int32_t state_ = 0;                    // of its automaton
  bool goes_on_ = false;                 // the boundary at state_ was decided for the pattern
  bool at_boundary_ = false;
  const TokenMask* mask_ = nullptr;
  bool greedy_ = false;
};

}  // namespace carillon
