#include "core/qwen3/stack.h"

#include <ATen/ATen.h>

#include "core/runtime/device.h"
#include "core/runtime/error.h"

namespace carillon {

Qwen3Stack Qwen3Stack::load(const Weights& weights, const Qwen3Config& config, const Control& control) {
  const nn::AttentionSize size = {config.hidden_size, config.num_attention_heads, config.num_key_value_heads,
                                  config.head_dim,    config.rms_norm_eps,        config.attention_bias};
  Qwen3Stack stack;
  stack.config = config;
  stack.embeddings = weights.finer().matrix("embed_tokens.weight", config.vocab_size, config.hidden_size);
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

at::Tensor Qwen3Stack::encode(const at::Tensor& ids) const {
  at::Tensor x = embed(ids);
  const auto rotary =
      nn::Rotary::make(ids.size(1), config.head_dim, config.rope_theta, {x.device(), x.scalar_type()});
  for (const auto& layer : layers) x = layer(x, rotary, {.causal = true});
  return norm(x);
}

}  // namespace carillon
