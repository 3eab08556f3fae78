#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/lm/language_job.h"
#include "core/lm/vocabulary.h"

namespace carillon {

/// Executes a job's program for one row of the batch. The row is in one of three states: at a choice among the ids of
/// `mask()`, at a boundary (a pattern is complete but could continue), or done. The cursor itself appends ids that need
/// no choice, such as token segments. The program, vocabulary and cache must outlive the cursor.
class ProgramCursor {
 public:
  ProgramCursor(const std::vector<Segment>& program, int64_t max_new_tokens, const Vocabulary& vocabulary,
                MaskCache& cache);

  bool done() const { return finished_.has_value(); }
  FinishReason finished() const { return *finished_; }

  /// All new ids, chosen or forced, without the end token.
  const std::vector<int32_t>& ids() const { return ids_; }

  bool at_boundary() const { return at_boundary_; }
  /// Call at a boundary. `most_likely` is the id with the highest raw logit of the whole vocabulary. If the pattern
  /// allows this id, the pattern continues with a choice. Otherwise the segment ends.
  void decide(int32_t most_likely);

  /// At a choice: the allowed ids, and whether the most likely one is taken instead of a sample.
  const TokenMask& mask() const { return *mask_; }
  bool greedy() const { return greedy_; }
  /// Call at a choice. Returns how many consecutive choices have the same mask, including this choice. Assumes that
  /// none of them chooses an end token.
  int64_t choices_from_same_mask() const;
  /// At a choice: appends an id of `mask()`.
  void push(int32_t id);

 private:
  // Advances within the given segment up to the next choice. Returns true if it stops at a choice or a boundary.
  bool advance(const TokensSegment& segment);
  bool advance(const PatternSegment& segment);
  bool advance(const CodesSegment& segment);
  bool advance(const TextSegment& segment);
  bool advance(const FreeSegment& segment);
  void advance_to_choice();
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
  std::shared_ptr<PatternMasks> masks_;  // masks of the current segment if it is a pattern
  int32_t state_ = 0;                    // state of the pattern's automaton
  bool continues_ = false;               // decide() chose to continue the pattern from state_
  bool at_boundary_ = false;
  const TokenMask* mask_ = nullptr;
  bool greedy_ = false;
};

}  // namespace carillon
