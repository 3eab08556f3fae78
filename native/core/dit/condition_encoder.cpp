#include "core/dit/condition_encoder.h"

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

at::Tensor EncoderStack::operator()(const at::Tensor& x, nn::AttentionPattern pattern, const Control& control) const {
  auto rotary = nn::Rotary::make(x.size(1), head_dim, rope_theta, {x.device(), x.scalar_type()});
  if (!pattern.lengths.empty()) rotary = rotary.for_sequences(pattern.lengths);
  pattern.window_is_one_sided = one_sided_windows;
  at::Tensor h = x;
  for (size_t index = 0; index < layers.size(); ++index) {
    control.check();
    pattern.window = windows[index];
    h = layers[index](h, rotary, pattern);
  }
  return norm(h);
}

ConditionEncoder ConditionEncoder::load(const Weights& weights, const DitConfig& config) {
  const int64_t width = config.encoder_hidden_size;
  const Weights lyric = weights.sub("lyric_encoder"), timbre = weights.sub("timbre_encoder");
  ConditionEncoder encoder;
  encoder.text_projector_ = nn::Linear::load(weights.sub("text_projector"), config.text_hidden_dim, width, false);
  encoder.lyric_embed_ = nn::Linear::load(lyric.sub("embed_tokens"), config.text_hidden_dim, width, true);
  encoder.lyric_stack_ = EncoderStack::load(lyric, config, config.num_lyric_encoder_hidden_layers);
  encoder.timbre_embed_ = nn::Linear::load(timbre.sub("embed_tokens"), config.timbre_hidden_dim, width, true);
  const at::Tensor special_token = timbre.get("special_token", {1, 1, width});
  if (config.timbre_prepends_special_token) encoder.timbre_special_token_ = special_token;
  encoder.timbre_stack_ = EncoderStack::load(timbre, config, config.num_timbre_encoder_hidden_layers);
  return encoder;
}

at::Tensor ConditionEncoder::encode_lyrics(const at::Tensor& embeddings, const nn::AttentionPattern& pattern,
                                           const Control& control) const {
  return lyric_stack_(lyric_embed_(embeddings), pattern, control);
}

at::Tensor ConditionEncoder::encode_timbre(const at::Tensor& latents) const {
  at::Tensor h = timbre_embed_(latents);
  if (timbre_special_token_.defined()) {
    h = at::cat({timbre_special_token_.expand({h.size(0), 1, h.size(2)}), h}, 1);
  }
  return timbre_stack_(h).select(1, 0);
}

}  // namespace carillon
