#include "core/qwen3/qwen3.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>

#include "core/runtime/error.h"

namespace carillon {

Qwen3Stack Qwen3Stack::load(const Weights& weights, const Qwen3Config& config, const Control& control) {
  const nn::AttentionSize size = {config.hidden_size, config.num_attention_heads, config.num_key_value_heads,
                                  config.head_dim,    config.rms_norm_eps,        config.attention_bias};
  Qwen3Stack stack;
  stack.config = config;
  stack.embeddings = weights.at_least_int8().matrix("embed_tokens.weight", config.vocab_size, config.hidden_size);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    control.report(Stage::kLoad, i, config.num_hidden_layers);
    stack.layers.push_back(
        nn::EncoderLayer::load(weights.sub("layers." + std::to_string(i)), size, config.intermediate_size));
  }
  stack.norm = nn::RmsNorm::load(weights.sub("norm"), config.hidden_size, config.rms_norm_eps);
  control.report(Stage::kLoad, config.num_hidden_layers, config.num_hidden_layers);
  return stack;
}

at::Tensor Qwen3Stack::embed(const at::Tensor& ids) const {
  const at::Tensor index = ids.to(at::kLong);
  if (index.numel() > 0) {
    const int64_t lowest = index.min().item<int64_t>(), highest = index.max().item<int64_t>();
    if (lowest < 0 || highest >= config.vocab_size) {
      fail(ErrorCode::kBadArgument, "token id " + std::to_string(lowest < 0 ? lowest : highest) +
                                        " is outside the vocabulary of " + std::to_string(config.vocab_size));
    }
  }
  return embeddings.gather(upload(index, embeddings.data.device()), norm.weight.scalar_type());
}

TextEncoder TextEncoder::load(const ModelSource& source, const Placement& placement, const Control& control) {
  TextEncoder encoder;
  const Checkpoint checkpoint = Checkpoint::open(source);
  checkpoint.require_memory(placement);
  encoder.stack_ = Qwen3Stack::load(checkpoint.weights(placement), Qwen3Config::read(source), control);
  encoder.unused_tensors_ = checkpoint.unused();
  return encoder;
}

at::Tensor TextEncoder::encode(const at::Tensor& ids, const std::vector<int64_t>& lengths,
                               const Control& control) const {
  const at::AutoDispatchBelowADInplaceOrView inference;  // disables gradients without creating inference tensors
  const Qwen3Config& config = stack_.config;
  require(ids.dim() == 2, "token ids must be [B, T]");
  const std::vector<int64_t> texts = lengths.empty() ? std::vector<int64_t>{ids.size(1)} : lengths;
  for (const int64_t tokens : texts) {
    require(tokens > 0 && tokens <= config.max_position_embeddings,
            "a text must have 1 .. " + std::to_string(config.max_position_embeddings) + " tokens, not " +
                std::to_string(tokens));
  }
  at::Tensor x = stack_.embed(ids);
  const auto rotary = nn::Rotary::make(*std::ranges::max_element(texts), config.head_dim, config.rope_theta,
                                       {x.device(), x.scalar_type()})
                          .for_sequences(texts);
  for (const auto& layer : stack_.layers) {
    control.check();
    x = layer(x, rotary, {.causal = true, .lengths = texts});
  }
  return stack_.norm(x);
}

at::Tensor TextEncoder::embed(const at::Tensor& ids) const {
  const at::AutoDispatchBelowADInplaceOrView inference;
  return stack_.embed(ids);
}

}  // namespace carillon
