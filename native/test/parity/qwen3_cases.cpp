// Goldens of the Qwen3 transformer: text encoder, language model logits and greedy decoding.
#include <ATen/ATen.h>

#include "core/qwen3/causal_lm.h"
#include "core/qwen3/qwen3.h"
#include "test/parity/case.h"

namespace carillon::parity {
namespace {

void text_encoder(Case& golden) {
  const auto encoder = TextEncoder::load(golden.checkpoint_directory, golden.placement, Control());
  const at::Tensor ids = golden.input("input_ids");
  golden.compare("embeddings", encoder.embed(ids));
  golden.compare("last_hidden_state", encoder.encode(ids));
}

std::vector<int64_t> all_rows(int64_t count) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < count; ++row) rows.push_back(row);
  return rows;
}

/// Feeds the prompt in one pass, then one token at a time through the cache.
at::Tensor decode_greedily(const CausalLm& model, const at::Tensor& prompt, int64_t new_tokens) {
  const auto rows = all_rows(prompt.size(0));
  KvCache cache = model.make_cache(prompt.size(0), prompt.size(1) + new_tokens);
  at::Tensor sequence = prompt, next = prompt;
  for (int64_t i = 0; i < new_tokens; ++i) {
    next = model.logits(model.feed(next, rows, cache)).argmax(-1, /*keepdim=*/true).cpu();
    sequence = at::cat({sequence, next}, 1);
  }
  return sequence;
}

void language_model(Case& golden) {
  const auto model = CausalLm::load(golden.checkpoint_directory, golden.placement, Control());
  const at::Tensor ids = golden.stored_input("input_ids");
  if (golden.has_output("logits")) {
    KvCache cache = model.make_cache(ids.size(0), ids.size(1));
    const at::Tensor logits = model.logits(model.feed_all(ids, all_rows(ids.size(0)), cache));
    // Some implementations return the logits of the last positions only.
    const int64_t compared = golden.params.get_int("last_positions", ids.size(1));
    golden.compare("logits", logits.narrow(1, ids.size(1) - compared, compared));
  }
  if (golden.has_output("sequence")) {
    golden.compare("sequence", decode_greedily(model, ids, golden.params.get_int("new_tokens")));
  }
}

const bool qwen3_registered = register_module("text_encoder", Depth::kModule, text_encoder) &&
                              register_module("lm", Depth::kModule, language_model);

}  // namespace
}  // namespace carillon::parity
