#pragma once
#include "core/checkpoint/checkpoint.h"

namespace carillon::pretraining {

/// The text encoder's weights stand under this name beside those of the DiT.
inline constexpr const char* kTextEncoder = "text_encoder";
/// What reads a piece's facts (facts.h) off the last text token, which knows all words. It teaches the text encoder to
/// keep them where a linear layer finds them; checkpoints go without it.
inline constexpr const char* kWordsHead = "words_head";

/// Logits of facts as numbers, [B, count], from hidden states [B, L, H] of texts with mask [B, L].
at::Tensor read_facts(const Weights& weights, const at::Tensor& states, const at::Tensor& mask, int64_t count);

/// Mean cross entropy of logits to numbers between 0 and 1, a scalar.
at::Tensor facts_error(const at::Tensor& logits, const at::Tensor& numbers);

}  // namespace carillon::pretraining
