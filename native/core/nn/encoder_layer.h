#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/nn/attention.h"
#include "core/nn/rms_norm.h"
#include "core/nn/swiglu.h"

namespace carillon::nn {

/// The pre-norm transformer layer that the condition encoder, the audio tokenizer and detokenizer and Qwen3 share:
///   x += attention(rms(x; input_layernorm));  x += mlp(rms(x; post_attention_layernorm))
struct EncoderLayer {
  RmsNorm input_layernorm;
  SelfAttention self_attn;
  RmsNorm post_attention_layernorm;
  SwiGlu mlp;

  static EncoderLayer load(const Weights& weights, const AttentionSize& size, int64_t intermediate_size);

  /// x [B, S, H] -> [B, S, H].
  at::Tensor operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const;
};

}  // namespace carillon::nn
