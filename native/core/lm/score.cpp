#include "core/lm/score.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "core/lm/sampler.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

constexpr int64_t kPromptChunk = 512;
/// Number of tokens that are scored at once. Limits memory, because each token needs logits for the whole vocabulary.
constexpr int64_t kTargetChunk = 32;

void add_scores(TokenScores& scores, const at::Tensor& logits, const at::Tensor& ids) {
  if (!logits.isfinite().all().item<bool>()) fail_not_finite();
  const at::Tensor own = logits.gather(1, ids.unsqueeze(1));
  const at::Tensor log_probabilities = (own.squeeze(1) - logits.logsumexp(1)).cpu();
  const at::Tensor ranks = ((logits > own).sum(1) + 1).to(at::kCPU, at::kInt);
  const auto append = [](auto& list, const auto* data, int64_t count) { list.insert(list.end(), data, data + count); };
  append(scores.log_probabilities, log_probabilities.const_data_ptr<float>(), ids.size(0));
  append(scores.ranks, ranks.const_data_ptr<int32_t>(), ids.size(0));
}

}  // namespace

std::vector<TokenScores> score(const CausalLm& model, const std::vector<int32_t>& prompt,
                               const std::vector<std::vector<int32_t>>& targets, int64_t max_context_tokens,
                               const Control& control) {
  require(!prompt.empty(), "the prompt is empty");
  size_t longest = 0;
  for (const auto& target : targets) {
    require(!target.empty(), "a text to score has no tokens");
    longest = std::max(longest, target.size());
  }
  const auto prompt_tokens = static_cast<int64_t>(prompt.size());
  const int64_t tokens = prompt_tokens + static_cast<int64_t>(longest);
  require(tokens <= max_context_tokens, "the prompt with the text to score has " + std::to_string(tokens) +
                                            " tokens, but the limit of the language model is " +
                                            std::to_string(max_context_tokens));
  KvCache cache = model.make_cache(1, tokens);
  const auto line_of = [](const std::vector<int32_t>& ids) { return at::tensor(ids, at::kInt).to(at::kLong); };
  const at::Tensor prompt_ids = line_of(prompt).unsqueeze(0);
  at::Tensor last;
  for (int64_t begin = 0; begin < prompt_tokens; begin += kPromptChunk) {
    control.report(Stage::kPrefill, begin, prompt_tokens);
    last = model.feed(prompt_ids.narrow(1, begin, std::min(kPromptChunk, prompt_tokens - begin)), {0}, cache);
  }
  std::vector<TokenScores> all;
  for (const auto& target : targets) {
    cache.truncate(0, prompt_tokens);
    const at::Tensor ids = line_of(target);
    TokenScores scores;
    at::Tensor before = last;  // the state that predicts the first token of the chunk
    for (int64_t begin = 0; begin < ids.size(0); begin += kTargetChunk) {
      control.check();
      const at::Tensor chunk = ids.narrow(0, begin, std::min(kTargetChunk, ids.size(0) - begin));
      const at::Tensor hidden = model.feed_all(chunk.unsqueeze(0), {0}, cache)[0];
      const at::Tensor predicting = at::cat({before, hidden.narrow(0, 0, hidden.size(0) - 1)});
      add_scores(scores, model.logits(predicting), chunk.to(predicting.device()));
      before = hidden.narrow(0, hidden.size(0) - 1, 1);
    }
    all.push_back(std::move(scores));
  }
  return all;
}

}  // namespace carillon
