#include "core/tasks/prompts.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace carillon {

PromptStates read_prompts(const TextEncoder& text_encoder, const std::vector<int32_t>& text_token_ids,
                          const std::vector<int32_t>& lyric_token_ids) {
  const auto row = [&](const std::vector<int32_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(0).to(text_encoder.placement().device);
  };
  return {text_encoder.encode(row(text_token_ids)), text_encoder.embed(row(lyric_token_ids))};
}

PackedStates encode_conditions(const AceStep& model, const PromptStates& prompts, const at::Tensor& timbre_latents) {
  const auto all_of = [](const at::Tensor& states) {
    return at::ones({1, states.size(1)}, states.options().dtype(at::kBool));
  };
  const at::Tensor timbre = timbre_latents.defined()
                                ? timbre_latents.to(model.placement.device, model.placement.dtype)
                                : model.silence_of(std::min(model.config.timbre_fix_frame, model.max_frames()));
  return model.encoder.encode({.text_hidden_states = prompts.text,
                               .text_mask = all_of(prompts.text),
                               .lyric_embeddings = prompts.lyrics,
                               .lyric_mask = all_of(prompts.lyrics),
                               .timbre_latents = timbre,
                               .timbre_items = at::zeros({1}, at::kLong)});
}

}  // namespace carillon
