#include "core/dit/audio_tokenizer.h"

#include <ATen/ATen.h>

#include <string>

#include "core/runtime/error.h"

namespace carillon {

Fsq::Fsq(std::vector<int64_t> levels) : levels_(std::move(levels)) {
  for (const int64_t level : levels_) {
    if (level < 2) fail(ErrorCode::kBadArgument, "a quantiser level must be at least 2, not " + std::to_string(level));
    basis_.push_back(codebook_size_);
    codebook_size_ *= level;
  }
}

at::Tensor Fsq::top_levels(const at::Device& device) const { return at::tensor(levels_, at::kLong).to(device) - 1; }

at::Tensor Fsq::bounded(const at::Tensor& z) const {
  const at::Tensor soft = 1.0 + 1.0 / top_levels(z.device()).to(at::kFloat);
  return (soft * (z.to(at::kFloat) / soft).tanh()).clamp(-1.0, 1.0);
}

at::Tensor Fsq::quantize(const at::Tensor& z) const {
  const at::Tensor level = (top_levels(z.device()) * (bounded(z) + 1.0) / 2.0 + 0.5).floor().to(at::kLong);
  return (level * at::tensor(basis_, at::kLong).to(z.device())).sum(-1);
}

at::Tensor Fsq::values(const at::Tensor& indices) const {
  if (indices.numel() > 0) {
    const int64_t lowest = indices.min().item<int64_t>(), highest = indices.max().item<int64_t>();
    if (lowest < 0 || highest >= codebook_size_) {
      fail(ErrorCode::kBadArgument, "audio code " + std::to_string(lowest < 0 ? lowest : highest) +
                                        " is outside 0 .. " + std::to_string(codebook_size_ - 1));
    }
  }
  const at::Tensor levels = at::tensor(levels_, at::kLong).to(indices.device());
  const at::Tensor basis = at::tensor(basis_, at::kLong).to(indices.device());
  const at::Tensor level = indices.unsqueeze(-1).div(basis, "floor").remainder(levels);
  return 2.0 * level.to(at::kFloat) / (levels - 1).to(at::kFloat) - 1.0;
}

AudioTokenizer AudioTokenizer::load(const Weights& model, const DitConfig& config) {
  const int64_t width = config.encoder_hidden_size;
  const Weights weights = model.unquantized(at::kFloat);
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

  const at::Tensor indices = fsq_.quantize(project_in_(pooled));
  return {embed(indices), indices};
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
