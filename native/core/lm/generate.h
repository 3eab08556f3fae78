#pragma once
#include <cstdint>
#include <optional>
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

/// One prompt, one program, one row per seed. Mirrors LanguageJob of src/engine/addon.ts.
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

/// Runs a job: one row per seed, all from the same prompt, in one batch until each row is finished.
/// `max_context_tokens`: positions of a row, prompt and new tokens together.
/// Reports kPrefill, then job.stage per token; the total is known when the program's length is.
/// Throws kBadArgument for a job that cannot run (check_job), kCancelled, kNotFinite.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// The loop itself over any decoder with a row per seed, and as many again (unconditional) when
/// cfg_scale is above 1. The job has passed check_job.
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

}  // namespace carillon
