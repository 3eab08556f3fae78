#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/nn/attention.h"
#include "core/nn/linear.h"
#include "core/nn/rms_norm.h"

namespace carillon::nn {

/// down(silu(gate(x)) * up(x)). Weights: {gate,up,down}_proj, no bias.
struct SwiGlu {
  Linear gate_up;  // rows: gate [I], up [I]
  Linear down;

  static SwiGlu load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size);

  /// x [..., H] -> [..., H].
  at::Tensor operator()(const at::Tensor& x) const;
};

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
