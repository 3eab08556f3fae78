#include "pretraining/words.h"

#include <ATen/ATen.h>

namespace carillon::pretraining {

at::Tensor read_facts(const Weights& weights, const at::Tensor& states, const at::Tensor& mask, int64_t count) {
  const at::Tensor last = mask.sum(1) - 1, items = at::arange(last.size(0), last.options());
  const Weights head = weights.sub(kWordsHead);
  return at::linear(states.index({items, last}), head.get("weight", {count, states.size(2)}),
                    head.get("bias", {count}));
}

at::Tensor facts_error(const at::Tensor& logits, const at::Tensor& numbers) {
  return at::binary_cross_entropy_with_logits(logits.to(at::kFloat), numbers);
}

}  // namespace carillon::pretraining
