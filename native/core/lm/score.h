#pragma once
#include <cstdint>
#include <vector>

#include "core/qwen3/causal_lm.h"
#include "core/runtime/control.h"

namespace carillon {

/// Likelihood of each token of a given text. Probabilities and ranks are relative to the model's whole vocabulary.
struct TokenScores {
  std::vector<float> log_probabilities;
  std::vector<int32_t> ranks;  // 1 for the most likely token
};

/// Scores each of `targets` as the continuation of the prompt, by teacher forcing. Throws kBadArgument if a prompt or
/// target is empty, an id is outside the vocabulary, or prompt and target together exceed `max_context_tokens`. Also
/// throws kCancelled and kNotFinite.
std::vector<TokenScores> score(const CausalLm& model, const std::vector<int32_t>& prompt,
                               const std::vector<std::vector<int32_t>>& targets, int64_t max_context_tokens,
                               const Control& control);

}  // namespace carillon
