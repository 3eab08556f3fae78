#include "core/dit/audio_tokenizer.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"

namespace carillon {

AudioTokenizer AudioTokenizer::load(const Weights& model, const DitConfig& config) {
  if (config.fsq_input_num_quantizers != 1) {
    fail(ErrorCode::kBadCheckpoint, "the audio tokenizer has more than one quantiser; only one is known");
  }
  const int64_t width = config.encoder_hidden_size;
  const Weights weights = model.as(at::kFloat);
  const Weights pooler = weights.sub("attention_pooler"), quantizer = weights.sub("quantizer");
  AudioTokenizer tokenizer(Fsq(config.fsq_input_levels), config.pool_window_size, model.placement().dtype);
  const int64_t dimensions = tokenizer.fsq_.dimensions();
  tokenizer.acoustic_proj_ =
      nn::Linear::load(weights.sub("audio_acoustic_proj"), config.audio_acoustic_hidden_dim, width, true);
  tokenizer.embed_ = nn::Linear::load(pooler.sub("embed_tokens"), width, width, true);
  tokenizer.special_token_ = pooler.get("special_token", {1, 1, width});
  tokenizer.pooler_ = EncoderStack::load(pooler, config, config.num_attention_pooler_hidden_layers);
  tokenizer.project_in_ = nn::Linear::load(quantizer.sub("project_in"), config.fsq_dim, dimensions, true);
  tokenizer.project_out_ = nn::Linear::load(quantizer.sub("project_out"), dimensions, config.fsq_dim, true);
  return tokenizer;
}

AudioTokenizer::Tokens AudioTokenizer::tokenize(const at::Tensor& latents, const at::Tensor& silence) const {
  const int64_t batch = latents.size(0), codes = (latents.size(1) + frames_per_code_ - 1) / frames_per_code_;
  const int64_t missing = codes * frames_per_code_ - latents.size(1);
  const at::Tensor padding = silence.narrow(1, 0, missing).expand({batch, missing, -1});

  at::Tensor h = embed_(acoustic_proj_(at::cat({latents.to(at::kFloat), padding.to(at::kFloat)}, 1)));
  h = h.reshape({batch * codes, frames_per_code_, -1});
  h = at::cat({special_token_.expand({batch * codes, 1, -1}), h}, 1);
  const at::Tensor pooled = pooler_(h).select(1, 0).reshape({batch, codes, -1});

  const at::Tensor z = project_in_(pooled), indices = fsq_.quantize(z);
  if (!z.requires_grad()) return {embed(indices), indices, z};
  return {project_out_(fsq_.straight_through(z)).to(dtype_), indices, z};
}

at::Tensor AudioTokenizer::embed(const at::Tensor& indices) const {
  return project_out_(fsq_.values(indices)).to(dtype_);
}

AudioDetokenizer AudioDetokenizer::load(const Weights& weights, const DitConfig& config) {
  const int64_t width = config.encoder_hidden_size;
  AudioDetokenizer detokenizer;
  detokenizer.embed_ = nn::Linear::load(weights.sub("embed_tokens"), config.fsq_dim, width, true);
  detokenizer.special_tokens_ = weights.get("special_tokens", {1, config.pool_window_size, width});
  detokenizer.stack_ = EncoderStack::load(weights, config, config.num_attention_pooler_hidden_layers);
  detokenizer.proj_out_ = nn::Linear::load(weights.sub("proj_out"), width, config.audio_acoustic_hidden_dim, true);
  return detokenizer;
}

at::Tensor AudioDetokenizer::hints(const at::Tensor& quantized) const {
  const int64_t batch = quantized.size(0), codes = quantized.size(1), frames = special_tokens_.size(1);
  const at::Tensor groups = embed_(quantized).reshape({batch * codes, 1, -1}) + special_tokens_;
  return proj_out_(stack_(groups)).reshape({batch, codes * frames, -1});
}

}  // namespace carillon
