#pragma once
#include <cstdint>
#include <vector>

#include "core/qwen3/causal_lm.h"
#include "core/runtime/control.h"

namespace carillon {

/// Likelihood of each token of a given text under a model, over its whole vocabulary.
struct TokenScores {
  std::vector<float> log_probabilities;
  std::vector<int32_t> ranks;  // 1 for the most likely token
};

/// Scores each of `targets` as the continuation of the prompt, by teacher forcing. Throws kBadArgument for an empty
/// prompt or target, an id outside the vocabulary, or prompt and target longer than `max_context_tokens` together;
/// kCancelled, kNotFinite.
std::vector<TokenScores> score(const CausalLm& model, const std::vector<int32_t>& prompt,
                               const std::vector<std::vector<int32_t>>& targets, int64_t max_context_tokens,
                               const Control& control);

}  // namespace carillon
