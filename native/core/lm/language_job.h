#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/lm/vocabulary.h"
#include "core/runtime/control.h"

namespace carillon {

/// Fixed tokens. The model reads all of them in one forward pass.
struct TokensSegment {
  std::vector<int32_t> ids;
};

/// Text that matches the regular expression `pattern` (syntax: README.md). From `max_tokens` on, the sampler is forced
/// to complete the match with as few tokens as possible.
struct PatternSegment {
  std::string pattern;
  bool greedy = false;
  int64_t max_tokens = 0;
};

/// Exactly `count` audio codes. Without a count: any number of audio codes until the end token.
struct CodesSegment {
  std::optional<int64_t> count;
};

/// Ordinary tokens (no audio codes) until an end token.
struct TextSegment {};

/// Unconstrained tokens until an end token.
struct FreeSegment {};

using Segment = std::variant<TokensSegment, PatternSegment, CodesSegment, TextSegment, FreeSegment>;

/// A prompt and the program of the output: a list of segments. Mirrors LanguageJob of src/engine/addon.ts.
struct LanguageJob {
  std::vector<int32_t> prompt;
  std::vector<int32_t> negative_prompt;  // required if cfg_scale is above 1
  std::vector<Segment> program;
  uint64_t seed = 0;
  int64_t max_new_tokens = 0;
  double temperature = 0.85;  // 0 or below: always the most likely token
  double cfg_scale = 1.0;     // 1: no guidance and no unconditional rows
  int64_t top_k = 0;          // 0 or below: off
  double top_p = 1.0;         // 0 or below, 1 or above: off
  double min_p = 0.0;         // minimum probability relative to the most likely token; 0: off
  double repetition_penalty = 1.0;
  bool shares_batch = true;    // may be decoded together with jobs of other requests
  Stage stage = Stage::kText;  // stage of progress reports; also the `phase` of uniform_draw
};

enum class FinishReason { kProgram, kEndToken, kLength };

template <>
inline constexpr Choices<FinishReason> kChoices<FinishReason> = {
    {"program", FinishReason::kProgram}, {"end_token", FinishReason::kEndToken}, {"length", FinishReason::kLength}};

/// Number of new tokens if every segment has a fixed length, else nullopt.
std::optional<int64_t> exact_length(const std::vector<Segment>& program);

/// Maximum number of new tokens of a job.
int64_t new_token_limit(const LanguageJob& job);

/// Throws kBadArgument if the job cannot run with this vocabulary, or if prompt and new tokens need more than
/// `max_context_tokens` positions.
void check_job(const LanguageJob& job, const Vocabulary& vocabulary, int64_t max_context_tokens);

bool has_same_sampling(const LanguageJob& a, const LanguageJob& b);
/// Throws kBadArgument if there is no job, if check_job rejects a job, or if the jobs differ in stage or sampling
/// options.
void check_jobs(std::span<const LanguageJob> jobs, const Vocabulary& vocabulary, int64_t max_context_tokens);

/// Maximum number of tokens that a song of these jobs needs: prompt and new tokens.
int64_t longest_row(std::span<const LanguageJob> jobs);

}  // namespace carillon
