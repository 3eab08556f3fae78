#include "core/nn/encoder_layer.h"

#include <ATen/ATen.h>

namespace carillon::nn {

EncoderLayer EncoderLayer::load(const Weights& weights, const AttentionSize& size, int64_t intermediate_size) {
  return {RmsNorm::load(weights.sub("input_layernorm"), size.hidden_size, size.rms_norm_eps),
          SelfAttention::load(weights.sub("self_attn"), size),
          RmsNorm::load(weights.sub("post_attention_layernorm"), size.hidden_size, size.rms_norm_eps),
          SwiGlu::load(weights.sub("mlp"), size.hidden_size, intermediate_size)};
}

at::Tensor EncoderLayer::operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const {
  const at::Tensor attended = x + self_attn(input_layernorm(x), rotary, pattern);
  return attended + mlp(post_attention_layernorm(attended));
}

}  // namespace carillon::nn
