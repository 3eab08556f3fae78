#include "core/lm/language_job.h"

#include <algorithm>
#include <cmath>
#include <tuple>

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
    require(vocabulary.code_count() > 0, "a codes segment needs a model with audio codes");
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
  require(job.min_p >= 0.0 && job.min_p <= 1.0, "minP must be within 0 .. 1");
  require(std::isfinite(job.cfg_scale) && job.cfg_scale >= 1.0, "cfgScale must be at least 1 (1 is off)");
  require(std::isfinite(job.repetition_penalty) && job.repetition_penalty > 0.0, "repetitionPenalty must be above 0");
  require(job.cfg_scale == 1.0 || !job.negative_prompt.empty(), "cfgScale above 1 needs a negative prompt");
}

}  // namespace

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

bool has_same_sampling(const LanguageJob& a, const LanguageJob& b) {
  const auto options = [](const LanguageJob& job) {
    return std::tuple(job.temperature, job.cfg_scale, job.top_k, job.top_p, job.min_p, job.repetition_penalty,
                      job.stage);
  };
  return options(a) == options(b);
}

void check_jobs(std::span<const LanguageJob> jobs, const Vocabulary& vocabulary, int64_t max_context_tokens) {
  require(!jobs.empty(), "the batch has no jobs");
  for (const LanguageJob& job : jobs) {
    check_job(job, vocabulary, max_context_tokens);
    require(has_same_sampling(job, jobs.front()), "the jobs of a batch must have the same stage and sampling options");
  }
}

int64_t longest_row(std::span<const LanguageJob> jobs) {
  int64_t longest = 0;
  for (const LanguageJob& job : jobs) {
    const auto prompt = static_cast<int64_t>(std::max(job.prompt.size(), job.negative_prompt.size()));
    longest = std::max(longest, prompt + new_token_limit(job));
  }
  return longest;
}

}  // namespace carillon
