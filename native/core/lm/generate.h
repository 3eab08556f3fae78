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

/// Exactly these ids, fed in one forward pass.
struct TokensSegment {
  std::vector<int32_t> ids;
};

/// Tokens whose bytes spell a string of the regular expression (syntax: README.md).
/// After `max_tokens` the shortest way to a complete string is taken.
struct PatternSegment {
  std::string pattern;
  bool greedy = false;
  int64_t max_tokens = 0;
};

/// Exactly `count` audio codes; without it any number, then the end token.
struct CodesSegment {
  std::optional<int64_t> count;
};

/// Ordinary tokens until an end token.
struct TextSegment {};

/// No constraint at all until an end token.
struct FreeSegment {};

using Segment = std::variant<TokensSegment, PatternSegment, CodesSegment, TextSegment, FreeSegment>;

/// One prompt, one program, one row per seed; a batch has one or more jobs. Mirrors LanguageJob of src/engine/addon.ts.
struct LanguageJob {
  std::vector<int32_t> prompt;
  std::vector<int32_t> negative_prompt;  // needed when cfg_scale is above 1
  std::vector<Segment> program;
  std::vector<uint64_t> seeds;
  int64_t max_new_tokens = 0;
  double temperature = 0.85;  // at or below 0: the most likely token
  double cfg_scale = 1.0;     // 1: no unconditional rows run
  int64_t top_k = 0;          // 0 or below: off
  double top_p = 1.0;         // 0 or below, 1 or above: off
  double min_p = 0.0;         // least probability of a token, as a share of the likeliest's; 0: off
  double repetition_penalty = 1.0;
  Stage stage = Stage::kText;  // what progress is called, and the phase of the random numbers
};

enum class FinishReason { kProgram, kEndToken, kLength };

/// The wire name: program, end_token, length.
const char* finish_reason_name(FinishReason reason);

struct LanguageResult {
  std::vector<std::vector<int32_t>> token_ids;  // per row, forced ids included, the end token excluded
  std::vector<FinishReason> finished;           // per row
};

/// New tokens the program has when every segment's length is fixed; nothing when one is open.
std::optional<int64_t> exact_length(const std::vector<Segment>& program);

/// The most tokens a row can grow by.
int64_t new_token_limit(const LanguageJob& job);

/// Throws kBadArgument when the job cannot run with this vocabulary and `max_context_tokens`
/// positions per row (prompt and new tokens together).
void check_job(const LanguageJob& job, const Vocabulary& vocabulary, int64_t max_context_tokens);

/// Runs jobs in one batch: one row per seed of each job. A step reads each weight once for all rows.
/// The jobs may differ in prompts, program, seeds and max_new_tokens; they share stage and sampling options.
/// On the CPU a row's ids do not depend on the other rows.
/// `max_context_tokens`: positions of a row, prompt and new tokens together.
/// Reports kPrefill, then the stage per token of the longest row; the total is known when every program's length is.
/// Throws kBadArgument for a job that cannot run (check_job), kOutOfMemory if the cache does not fit (check_cache),
/// kCancelled, kNotFinite.
std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                     const Control& control);
/// One job.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// The loop itself over any decoder with a row per seed, and as many again (unconditional) when
/// cfg_scale is above 1. The jobs have passed check_job.
std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, const Control& control);
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

/// Throws kOutOfMemory unless caches of `rows` rows of `row_bytes` fit `free_bytes`. The message names how many songs
/// would fit; `rows_per_song`: 2 with guidance.
void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes);

}  // namespace carillon
