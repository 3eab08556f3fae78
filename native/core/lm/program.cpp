#include "core/lm/program.h"

#include <algorithm>

#include "core/runtime/error.h"

namespace carillon {

ProgramCursor::ProgramCursor(const std::vector<Segment>& program, int64_t max_new_tokens, const Vocabulary& vocabulary,
                             MaskCache& cache)
    : program_(program), max_new_tokens_(max_new_tokens), vocabulary_(vocabulary), cache_(cache) {
  advance_to_choice();
}

void ProgramCursor::advance_to_choice() {
  bool waits = false;
  while (!waits && !finished_) {
    if (segment_ == program_.size()) {
      finished_ = FinishReason::kProgram;
    } else if (static_cast<int64_t>(ids_.size()) >= max_new_tokens_) {
      finished_ = FinishReason::kLength;
    } else {
      waits = std::visit([this](const auto& segment) { return advance(segment); }, program_[segment_]);
    }
  }
}

bool ProgramCursor::advance(const TokensSegment& segment) {
  append(segment.ids);
  return next_segment();
}

bool ProgramCursor::advance(const PatternSegment& segment) {
  if (!masks_) {
    masks_ = cache_.pattern(segment.pattern);
    state_ = masks_->pattern().start();
  }
  const bool complete = masks_->pattern().accepting(state_);
  if (used_ >= segment.max_tokens) {
    if (!complete) append(vocabulary_.spell(masks_->pattern().shortest_completion(state_)));
    return next_segment();
  }
  const auto& mask = masks_->mask(state_);
  if (mask.count == 0) {
    if (complete) return next_segment();
    fail(ErrorCode::kBadArgument, "the vocabulary has no token that continues the pattern " + segment.pattern);
  }
  at_boundary_ = complete && !continues_;
  if (at_boundary_) return true;
  greedy_ = segment.greedy;
  return choose_from(mask);
}

bool ProgramCursor::advance(const CodesSegment& segment) {
  if (segment.count && used_ >= *segment.count) return next_segment();
  greedy_ = false;
  return choose_from(segment.count ? cache_.codes() : cache_.codes_or_end());
}

bool ProgramCursor::advance(const TextSegment&) {
  greedy_ = false;
  return choose_from(cache_.text());
}

bool ProgramCursor::advance(const FreeSegment&) {
  greedy_ = false;
  return choose_from(cache_.everything());
}

bool ProgramCursor::choose_from(const TokenMask& mask) {
  mask_ = &mask;
  if (mask.count > 1) return true;
  append(static_cast<int32_t>(mask.id(0)));
  return false;
}

void ProgramCursor::decide(int32_t most_likely) {
  at_boundary_ = false;
  const auto bytes = vocabulary_.bytes(most_likely);
  continues_ = !bytes.empty() && masks_->pattern().walk(state_, bytes) != Pattern::kDead;
  if (!continues_) next_segment();
  advance_to_choice();
}

int64_t ProgramCursor::choices_from_same_mask() const {
  const int64_t room = max_new_tokens_ - static_cast<int64_t>(ids_.size());
  const Segment& segment = program_[segment_];
  if (std::holds_alternative<PatternSegment>(segment)) return 1;
  const auto* codes = std::get_if<CodesSegment>(&segment);
  return codes && codes->count ? std::min(room, *codes->count - used_) : room;
}

void ProgramCursor::push(int32_t id) {
  append(id);
  advance_to_choice();
}

void ProgramCursor::append(int32_t id) {
  if (!masks_ && vocabulary_.is_end(id)) {
    finished_ = FinishReason::kEndToken;
    return;
  }
  ids_.push_back(id);
  ++used_;
  if (masks_) state_ = masks_->pattern().walk(state_, vocabulary_.bytes(id));
  continues_ = false;
}

/// Appends forced ids. Unlike a chosen end token, a forced one does not end the row.
void ProgramCursor::append(std::span<const int32_t> ids) {
  const auto room = static_cast<size_t>(max_new_tokens_) - ids_.size();
  if (ids.size() > room) finished_ = FinishReason::kLength;
  const auto taken = ids.first(std::min(ids.size(), room));
  ids_.insert(ids_.end(), taken.begin(), taken.end());
}

bool ProgramCursor::next_segment() {
  ++segment_;
  used_ = 0;
  masks_.reset();
  continues_ = false;
  return false;
}

}  // namespace carillon
