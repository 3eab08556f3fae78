#include "core/dit/dit.h"

#include <ATen/ATen.h>

#include <string>

namespace carillon {
namespace {

/// Indices of the rows of a layer's modulation.
enum { kAttentionShift, kAttentionScale, kAttentionGate, kMlpShift, kMlpScale, kMlpGate, kLayerRows };
enum { kOutputShift, kOutputScale, kOutputRows };

at::Tensor modulated(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return at::addcmul(shift, x, scale);
}

}  // namespace

DitLayer DitLayer::load(const Weights& weights, const DitConfig& config, int64_t index) {
  const nn::AttentionSize size{config.hidden_size, config.num_attention_heads, config.num_key_value_heads,
                               config.head_dim,    config.rms_norm_eps,        config.attention_bias};
  const auto norm = [&](const char* name) {
    return nn::RmsNorm::load(weights.sub(name), config.hidden_size, config.rms_norm_eps);
  };
  DitLayer layer;
  layer.self_attn_norm = norm("self_attn_norm");
  layer.cross_attn_norm = norm("cross_attn_norm");
  layer.mlp_norm = norm("mlp_norm");
  layer.self_attn = nn::SelfAttention::load(weights.sub("self_attn"), size);
  layer.cross_attn = nn::CrossAttention::load(weights.sub("cross_attn"), size);
  layer.mlp = nn::SwiGlu::load(weights.sub("mlp"), config.hidden_size, config.intermediate_size);
  layer.window = config.window_of_layer(index);
  layer.one_sided_window = config.one_sided_windows;
  return layer;
}

at::Tensor DitLayer::self_attended(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary) const {
  const auto row = [&](int64_t index) { return modulation.narrow(1, index, 1); };
  const at::Tensor y = modulated(self_attn_norm(x), row(kAttentionShift), row(kAttentionScale));
  return at::addcmul(x,
                     self_attn(y, rotary, {.window = window, .window_is_one_sided = one_sided_window, .by_item = true}),
                     row(kAttentionGate));
}

at::Tensor DitLayer::operator()(const at::Tensor& x, const at::Tensor& modulation, const nn::Rotary& rotary,
                                const CrossCache::Layer& cross) const {
  const auto row = [&](int64_t index) { return modulation.narrow(1, index, 1); };
  at::Tensor h = self_attended(x, modulation, rotary);

  const int64_t rows = cross.conditional.k.size(0);
  if (h.size(0) == rows) {
    h = h + cross_attn(cross_attn_norm(h), cross.conditional);
  } else {
    const at::Tensor conditional = h.narrow(0, 0, rows), unconditional = h.narrow(0, rows, h.size(0) - rows);
    h = at::cat({conditional + cross_attn(cross_attn_norm(conditional), cross.conditional),
                 unconditional + cross.unconditional});
  }

  const at::Tensor y = modulated(mlp_norm(h), row(kMlpShift), row(kMlpScale));
  return at::addcmul(h, mlp(y), row(kMlpGate));
}

Dit Dit::load(const Weights& weights, const DitConfig& config, const Control& control) {
  const int64_t hidden = config.hidden_size, depth = config.num_hidden_layers;
  Dit dit;
  dit.is_turbo_ = config.is_turbo;
  dit.latent_channels_ = config.audio_acoustic_hidden_dim;
  dit.head_dim_ = config.head_dim;
  dit.rope_theta_ = config.rope_theta;
  dit.patch_in_ = PatchEmbedding::load(weights.sub("proj_in.1"), config);
  dit.time_embed_ = TimeEmbedding::load(weights.sub("time_embed"), hidden);
  dit.time_embed_r_ = TimeEmbedding::load(weights.sub("time_embed_r"), hidden);
  dit.condition_embedder_ =
      nn::Linear::load(weights.sub("condition_embedder"), config.encoder_hidden_size, hidden, true);
  std::vector<at::Tensor> tables;
  for (int64_t index = 0; index < depth; ++index) {
    const Weights layer = weights.sub("layers." + std::to_string(index));
    dit.layers_.push_back(DitLayer::load(layer, config, index));
    tables.push_back(layer.get("scale_shift_table", {1, kLayerRows, hidden}, at::kFloat));
    control.report(Stage::kLoad, index + 1, depth);
  }
  dit.layer_tables_ = at::stack(tables);
  dit.output_table_ = weights.get("scale_shift_table", {1, kOutputRows, hidden}, at::kFloat);
  dit.norm_out_ = nn::RmsNorm::load(weights.sub("norm_out"), hidden, config.rms_norm_eps);
  dit.patch_out_ = PatchOutput::load(weights.sub("proj_out.1"), config);
  dit.refresh();
  return dit;
}

std::vector<Projection> Dit::projections() {
  std::vector<Projection> all;
  const auto add = [&](const std::string& prefix, nn::Linear& linear, std::initializer_list<const char*> names,
                       std::initializer_list<int64_t> rows) {
    int64_t first = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      all.push_back({prefix + names.begin()[i], &linear, first, rows.begin()[i]});
      first += rows.begin()[i];
    }
  };
  const auto add_whole = [&](const std::string& name, nn::Linear& linear) {
    add(name, linear, {""}, {linear.outputs()});
  };
  for (auto* embedding : {&time_embed_, &time_embed_r_}) {
    const std::string prefix = embedding == &time_embed_ ? "time_embed." : "time_embed_r.";
    add_whole(prefix + "linear_1", embedding->linear_1);
    add_whole(prefix + "linear_2", embedding->linear_2);
    add_whole(prefix + "time_proj", embedding->time_proj);
  }
  add_whole("condition_embedder", condition_embedder_);
  for (size_t index = 0; index < layers_.size(); ++index) {
    const std::string prefix = "layers." + std::to_string(index) + ".";
    DitLayer& layer = layers_[index];
    const auto& size = layer.self_attn.size;
    const int64_t q = size.num_heads * size.head_dim, kv = size.num_kv_heads * size.head_dim;
    add(prefix + "self_attn.", layer.self_attn.qkv, {"q_proj", "k_proj", "v_proj"}, {q, kv, kv});
    add_whole(prefix + "self_attn.o_proj", layer.self_attn.o);
    add_whole(prefix + "cross_attn.q_proj", layer.cross_attn.q);
    add(prefix + "cross_attn.", layer.cross_attn.kv, {"k_proj", "v_proj"}, {kv, kv});
    add_whole(prefix + "cross_attn.o_proj", layer.cross_attn.o);
    const int64_t half = layer.mlp.down.inputs();
    add(prefix + "mlp.", layer.mlp.gate_up, {"gate_proj", "up_proj"}, {half, half});
    add_whole(prefix + "mlp.down_proj", layer.mlp.down);
  }
  return all;
}

void Dit::refresh() {
  zero_interval_ = time_embed_r_(at::zeros({1}, at::device(layer_tables_.device()).dtype(at::kFloat)));
}

Modulation Dit::combine(const TimeEmbedding::Output& t, const TimeEmbedding::Output& r) const {
  const at::ScalarType dtype = t.embedding.scalar_type();
  // Adds 1 to the scales once, instead of for every item and step.
  const auto one_more = [&](int64_t rows, std::initializer_list<int64_t> scales) {
    at::Tensor offset = at::zeros({rows, 1}, layer_tables_.options());
    for (const int64_t scale : scales) offset[scale].fill_(1.0);
    return offset;
  };
  const at::Tensor layers =
      layer_tables_ + (t.modulation + r.modulation).to(at::kFloat) + one_more(kLayerRows, {kAttentionScale, kMlpScale});
  const at::Tensor output =
      output_table_ + (t.embedding + r.embedding).to(at::kFloat).unsqueeze(1) + one_more(kOutputRows, {kOutputScale});
  return {layers.to(dtype), output.to(dtype)};
}

Modulation Dit::modulate(const at::Tensor& times) const { return combine(time_embed_(times), zero_interval_); }

Modulation Dit::modulate(const at::Tensor& times, const at::Tensor& reference_times) const {
  return combine(time_embed_(times), time_embed_r_(times - reference_times));
}

CrossCache Dit::make_cross_cache(const at::Tensor& encoder_states, const at::Tensor& null_condition,
                                 const at::Tensor& encoder_mask) const {
  const at::Tensor context = condition_embedder_(encoder_states);
  const at::Tensor null_context = null_condition.defined() ? condition_embedder_(null_condition) : at::Tensor();
  CrossCache cache;
  for (const auto& layer : layers_) {
    CrossCache::Layer entry{layer.cross_attn.keys_values(context, encoder_mask), {}};
    if (null_context.defined()) {
      // The query has no effect, because the softmax over a single key is 1.
      const at::Tensor any_query = at::zeros_like(null_context);
      entry.unconditional = layer.cross_attn(any_query, layer.cross_attn.keys_values(null_context));
    }
    cache.layers.push_back(std::move(entry));
  }
  return cache;
}

ContextTokens Dit::embed_context(const at::Tensor& context) const {
  const at::Tensor tokens = patch_in_.embed_context(context);
  return {tokens, nn::Rotary::make(tokens.size(1), head_dim_, rope_theta_, {tokens.device(), tokens.scalar_type()})};
}

at::Tensor Dit::velocity(const at::Tensor& state, const ContextTokens& context, const Modulation& modulation,
                         const CrossCache& cross) const {
  at::Tensor h = context.tokens + patch_in_.embed_state(state);
  for (size_t index = 0; index < layers_.size(); ++index) {
    h = layers_[index](h, modulation.layers[static_cast<int64_t>(index)], context.rotary, cross.layers[index]);
  }
  return output(h, modulation, state.size(1));
}

void Dit::visit_attention(const std::vector<AttentionHead>& heads, const at::Tensor& state,
                          const ContextTokens& context, const Modulation& modulation, const CrossCache& cross,
                          const std::function<void(const at::Tensor& weights)>& on_weights) const {
  at::Tensor h = context.tokens + patch_in_.embed_state(state);
  int64_t at_layer = 0;
  for (const auto& [index, head] : heads) {
    const auto rows = [&](int64_t of_layer) { return modulation.layers[of_layer]; };
    const auto cross_of = [&](int64_t of_layer) -> const CrossCache::Layer& {
      return cross.layers[static_cast<size_t>(of_layer)];
    };
    for (; at_layer < index; ++at_layer) {
      h = layers_[static_cast<size_t>(at_layer)](h, rows(at_layer), context.rotary, cross_of(at_layer));
    }
    const DitLayer& layer = layers_[static_cast<size_t>(index)];
    const at::Tensor x = layer.cross_attn_norm(layer.self_attended(h, rows(index), context.rotary));
    on_weights(layer.cross_attn.weights(x, cross_of(index).conditional, head));
  }
}

at::Tensor Dit::velocity_by_layer(const at::Tensor& state, const ContextTokens& context, const Modulation& modulation,
                                  const at::Tensor& encoder_states, const at::Tensor& encoder_mask,
                                  const LayerRunner& run) const {
  const at::Tensor conditions = condition_embedder_(encoder_states);
  // Autograd only records a checkpointed layer if its input requires a gradient.
  at::Tensor h = (context.tokens + patch_in_.embed_state(state)).detach().requires_grad_();
  for (size_t index = 0; index < layers_.size(); ++index) {
    const auto layer = [&layer = layers_[index], rotary = context.rotary, conditions, encoder_mask,
                        rows = modulation.layers[static_cast<int64_t>(index)]](const at::Tensor& x) {
      return layer(x, rows, rotary, {layer.cross_attn.keys_values(conditions, encoder_mask), {}});
    };
    h = run(layer, h);
  }
  return output(h, modulation, state.size(1));
}

at::Tensor Dit::output(const at::Tensor& h, const Modulation& modulation, int64_t frames) const {
  const auto row = [&](int64_t index) { return modulation.output.narrow(1, index, 1); };
  return patch_out_(modulated(norm_out_(h), row(kOutputShift), row(kOutputScale)), frames);
}

}  // namespace carillon
