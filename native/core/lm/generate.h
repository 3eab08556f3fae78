#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/lm/decoder.h"
#include "core/lm/vocabulary.h"
#include "core/runtime/control.h"

namespace carillon {

/// Forces these ids, fed in one forward pass.
struct TokensSegment {
  std::vector<int32_t> ids;
};

/// Tokens whose bytes spell a string of the regular expression (syntax: README.md). After `max_tokens` the shortest
/// completion is forced, so the string is always complete.
struct PatternSegment {
  std::string pattern;
  bool greedy = false;
  int64_t max_tokens = 0;
};

/// Exactly `count` audio codes; without a count any number, then the end token.
struct CodesSegment {
  std::optional<int64_t> count;
};

/// Ordinary tokens (no audio codes) until an end token.
struct TextSegment {};

/// Unconstrained tokens until an end token.
struct FreeSegment {};

using Segment = std::variant<TokensSegment, PatternSegment, CodesSegment, TextSegment, FreeSegment>;

/// A prompt, a program of segments, and one row per seed. A batch has one or more jobs, such as the songs of a task.
/// Mirrors LanguageJob of src/engine/addon.ts.
struct LanguageJob {
  std::vector<int32_t> prompt;
  std::vector<int32_t> negative_prompt;  // required if cfg_scale is above 1
  std::vector<Segment> program;
  std::vector<uint64_t> seeds;
  int64_t max_new_tokens = 0;
  double temperature = 0.85;  // at or below 0: the most likely token
  double cfg_scale = 1.0;     // 1: no guidance, no unconditional rows
  int64_t top_k = 0;          // 0 or below: off
  double top_p = 1.0;         // 0 or below, 1 or above: off
  double min_p = 0.0;         // minimum probability relative to the most likely token; 0: off
  double repetition_penalty = 1.0;
  Stage stage = Stage::kText;  // stage of progress reports, and phase of the random numbers
};

enum class FinishReason { kProgram, kEndToken, kLength };

/// The wire name: program, end_token, length.
const char* finish_reason_name(FinishReason reason);

struct LanguageResult {
  std::vector<std::vector<int32_t>> token_ids;  // per row, with forced ids, without the end token
  std::vector<FinishReason> finished;           // per row
};

/// Number of new tokens if every segment has a fixed length, else nullopt.
std::optional<int64_t> exact_length(const std::vector<Segment>& program);

/// Maximum number of new tokens of a row.
int64_t new_token_limit(const LanguageJob& job);

/// Throws kBadArgument if the job cannot run with this vocabulary and `max_context_tokens` positions per row (prompt
/// and new tokens).
void check_job(const LanguageJob& job, const Vocabulary& vocabulary, int64_t max_context_tokens);

/// Runs jobs in one batch: one row per seed of each job. A step reads each weight once for all rows. The jobs may
/// differ in prompts, program, seeds and max_new_tokens; they share stage and sampling options.
///
/// On the CPU a row does not depend on the other rows, bit for bit: products of up to 16 rows sum every row in the same
/// order, prompts and forced runs are fed alone, and each row's logits cover the ids that it needs alone. On a GPU the
/// kernels depend on the number of rows, so another batch size may round differently and change a plan.
///
/// `max_context_tokens`: positions of a row, prompt and new tokens. Reports kPrefill, then the stage for each token of
/// the longest row; the total is known if every program has a fixed length. Throws kBadArgument for a job that cannot
/// run (check_job), kOutOfMemory if the cache does not fit (check_cache), kCancelled, kNotFinite.
std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                     const Control& control);
/// Runs one job.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// The same with any decoder, which has one row per seed, followed by as many unconditional rows if cfg_scale is above
/// 1. Jobs must have passed check_job.
std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, const Control& control);
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

/// Throws kOutOfMemory unless `rows` cache rows of `row_bytes` fit into `free_bytes`. The message contains the number
/// of songs that would fit. `rows_per_song` is 2 with guidance.
void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes);

}  // namespace carillon
