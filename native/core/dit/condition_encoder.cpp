#include "core/dit/condition_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "core/runtime/error.h"

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

PackedStates pack(const PackedStates& first, const PackedStates& second) {
  const at::Tensor states = at::cat({first.states, second.states}, 1);
  const at::Tensor mask = at::cat({first.mask, second.mask}, 1);
  const at::Tensor order = mask.to(at::kInt).argsort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  return {states.gather(1, order.unsqueeze(-1).expand_as(states)), mask.gather(1, order)};
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

PackedStates ConditionEncoder::encode(const ConditionInputs& inputs) const {
  const int64_t batch = inputs.text_hidden_states.size(0);
  const PackedStates lyrics{encode_lyrics(inputs.lyric_embeddings, inputs.lyric_mask), inputs.lyric_mask};
  const PackedStates timbre = encode_timbre(inputs.timbre_latents, inputs.timbre_items, batch);
  const PackedStates text{text_projector_(inputs.text_hidden_states), inputs.text_mask};
  return pack(pack(lyrics, timbre), text);
}

at::Tensor ConditionEncoder::encode_lyrics(const at::Tensor& embeddings, const at::Tensor& mask) const {
  const bool padded = !mask.all().item<bool>();
  return lyric_stack_(lyric_embed_(embeddings), padded ? mask : at::Tensor());
}

PackedStates ConditionEncoder::encode_timbre(const at::Tensor& latents, const at::Tensor& items, int64_t batch) const {
  at::Tensor h = timbre_embed_(latents);
  if (timbre_special_token_.defined()) {
    h = at::cat({timbre_special_token_.expand({h.size(0), 1, h.size(2)}), h}, 1);
  }
  const at::Tensor pooled = timbre_stack_(h).select(1, 0);  // [R, E]

  const at::Tensor item_of = items.to(at::kCPU, at::kLong).contiguous();
  std::vector<std::vector<int64_t>> clips(batch);
  for (int64_t clip = 0; clip < item_of.numel(); ++clip) {
    const int64_t item = item_of.const_data_ptr<int64_t>()[clip];
    if (item < 0 || item >= batch) {
      fail(ErrorCode::kBadArgument,
           "a reference clip is for item " + std::to_string(item) + ", but the batch has " + std::to_string(batch) +
               " items, counted from 0");
    }
    clips[item].push_back(clip);
  }
  size_t most = 0;
  for (const auto& list : clips) most = std::max(most, list.size());

  at::Tensor states = at::zeros({batch, static_cast<int64_t>(most), pooled.size(1)}, pooled.options());
  at::Tensor mask = at::zeros({batch, static_cast<int64_t>(most)}, pooled.options().dtype(at::kBool));
  for (int64_t item = 0; item < batch; ++item) {
    const int64_t count = static_cast<int64_t>(clips[item].size());
    if (count == 0) continue;
    const at::Tensor rows = at::tensor(clips[item], at::kLong).to(pooled.device());
    states[item].narrow(0, 0, count).copy_(pooled.index_select(0, rows));
    mask[item].narrow(0, 0, count).fill_(true);
  }
  return {states, mask};
}

}  // namespace carillon
