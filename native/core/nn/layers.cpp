#include <ATen/ATen.h>

#include "core/nn/encoder_layer.h"
#include "core/nn/linear.h"
#include "kernels/linear.h"

namespace carillon::nn {

at::Tensor linear(const at::Tensor& x, const kernels::Matrix& weight, const at::Tensor& bias) {
  return kernels::linear(x, weight, bias);
}

Linear Linear::load(const Weights& weights, int64_t in, int64_t out, bool has_bias) {
  return {weights.matrix("weight", out, in), has_bias ? weights.get("bias", {out}) : at::Tensor()};
}

Linear Linear::load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                          const std::vector<int64_t>& rows, bool has_bias) {
  std::vector<std::string> weight_names, bias_names;
  for (const auto& name : names) {
    weight_names.push_back(name + ".weight");
    bias_names.push_back(name + ".bias");
  }
  return {weights.matrix_rows(weight_names, rows, in), has_bias ? weights.get_rows(bias_names, rows, {}) : at::Tensor()};
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor y = nn::linear(x, weight, bias);
  for (const auto& branch : branches) y.narrow(-1, branch.first_row, branch.rows).add_(branch.delta(x));
  return y;
}

SwiGlu SwiGlu::load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size) {
  return {
      Linear::load_fused(weights, {"gate_proj", "up_proj"}, hidden_size, {intermediate_size, intermediate_size}, false),
      Linear::load(weights.sub("down_proj"), intermediate_size, hidden_size, false)};
}

at::Tensor SwiGlu::operator()(const at::Tensor& x) const {
  const auto halves = gate_up(x).chunk(2, -1);
  return down(at::silu(halves[0]) * halves[1]);
}

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
