#include "core/dit/encoder_stack.h"

#include <ATen/ATen.h>

#include <string>

namespace carillon {

EncoderStack EncoderStack::load(const Weights& weights, const DitConfig& config, int64_t count) {
  const nn::AttentionSize size{config.encoder_hidden_size,
                               config.encoder_num_attention_heads,
                               config.encoder_num_key_value_heads,
                               config.head_dim,
                               config.rms_norm_eps,
                               config.attention_bias};
  EncoderStack stack;
  for (int64_t index = 0; index < count; ++index) {
    stack.layers.push_back(
        nn::EncoderLayer::load(weights.sub("layers." + std::to_string(index)), size, config.encoder_intermediate_size));
    stack.windows.push_back(config.window_of_layer(index));
  }
  stack.one_sided_windows = config.one_sided_windows;
  stack.norm = nn::RmsNorm::load(weights.sub("norm"), config.encoder_hidden_size, config.rms_norm_eps);
  stack.head_dim = config.head_dim;
  stack.rope_theta = config.rope_theta;
  return stack;
}

at::Tensor EncoderStack::operator()(const at::Tensor& x, const at::Tensor& key_mask) const {
  const auto rotary = nn::Rotary::make(x.size(1), head_dim, rope_theta, {x.device(), x.scalar_type()});
  at::Tensor h = x;
  for (size_t index = 0; index < layers.size(); ++index) {
    h = layers[index](h, rotary,
                      {.window = windows[index], .window_is_one_sided = one_sided_windows, .key_mask = key_mask});
  }
  return norm(h);
}

}  // namespace carillon
