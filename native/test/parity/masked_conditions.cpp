#include "test/parity/masked_conditions.h"

#include <ATen/ATen.h>

namespace carillon::parity {

namespace {

/// Concatenates two sequences per item, then moves the padding to the end. All other elements keep their order.
PaddedStates pack(const PaddedStates& first, const PaddedStates& second) {
  const at::Tensor states = at::cat({first.states, second.states}, 1);
  const at::Tensor mask = at::cat({first.mask, second.mask}, 1);
  const at::Tensor order = mask.to(at::kInt).argsort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  return {states.gather(1, order.unsqueeze(-1).expand_as(states)), mask.gather(1, order)};
}

}  // namespace

at::Tensor encode_lyrics(const ConditionEncoder& encoder, const at::Tensor& embeddings, const at::Tensor& mask) {
  return encoder.encode_lyrics(embeddings, {.key_mask = mask});
}

PaddedStates encode_timbre(const ConditionEncoder& encoder, const at::Tensor& latents, const at::Tensor& items) {
  const at::Tensor clips = encoder.encode_timbre(latents);
  const at::Tensor counts = items.cpu().bincount();
  const int64_t most = counts.max().item<int64_t>();
  const at::Tensor mask = (at::arange(most) < counts.unsqueeze(1)).to(clips.device());
  const at::Tensor states = clips.new_zeros({counts.size(0), most, clips.size(1)});
  return {states.masked_scatter(mask.unsqueeze(-1), clips), mask};
}

PaddedStates encode(const ConditionEncoder& encoder, const MaskedConditions& conditions) {
  const auto& [text, text_mask, lyrics, lyric_mask, timbre_latents, timbre_items] = conditions;
  return pack(pack({encode_lyrics(encoder, lyrics, lyric_mask), lyric_mask},
                   encode_timbre(encoder, timbre_latents, timbre_items)),
              {encoder.project_text(text), text_mask});
}

}  // namespace carillon::parity
