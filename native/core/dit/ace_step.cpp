#include "core/dit/ace_step.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"

namespace carillon {

AceStep AceStep::load(const ModelSource& source, const Placement& placement, const Control& control) {
  return load(source, DitConfig::read(source), placement, control);
}

AceStep AceStep::load(const ModelSource& source, const DitConfig& config, const Placement& placement,
                      const Control& control) {
  const Checkpoint checkpoint = Checkpoint::open(source);
  checkpoint.require_memory(placement);
  const Weights weights = checkpoint.weights(placement);
  const at::Tensor silence = read_silence_latent(checkpoint, config.audio_acoustic_hidden_dim);
  return {.config = config,
          .placement = placement,
          .dit = Dit::load(weights.sub("decoder"), config, control),
          .encoder = ConditionEncoder::load(weights.sub("encoder"), config),
          .tokenizer = AudioTokenizer::load(weights.sub("tokenizer"), config),
          .detokenizer = AudioDetokenizer::load(weights.sub("detokenizer"), config),
          .null_condition = weights.get("null_condition_emb", {1, 1, config.encoder_hidden_size}),
          .silence = silence.defined() ? silence.to(placement.device, placement.dtype) : silence,
          .silent_frame = silence.defined() ? first_frame(silence) : silence,
          .unused_tensors = checkpoint.unused(),
          .decoder_weights = weights.sub("decoder")};
}

at::Tensor first_frame(const at::Tensor& latents) {
  return latents.select(0, 0).select(0, 0).to(at::kCPU, at::kFloat).contiguous();
}

at::Tensor AceStep::silence_of(int64_t frames) const {
  if (frames < 0 || frames > max_frames()) {
    fail(ErrorCode::kBadArgument, std::to_string(frames) + " latent frames were requested, but this checkpoint " +
                                      "supports at most " + std::to_string(max_frames()));
  }
  return silence.narrow(1, 0, frames);
}

}  // namespace carillon
