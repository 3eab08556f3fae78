#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/tasks/renderer.h"
#include "core/training/sample.h"

namespace carillon {

/// A piece of music and its prompts.
struct PreparationJob {
  std::vector<int32_t> text_token_ids;   // as RenderJob's
  std::vector<int32_t> lyric_token_ids;  // as RenderJob's
  at::Tensor audio;                      // [channels, samples] float32 at the VAE's sample rate
  TorchNotes metadata;                   // kept as it is
};

/// What an adapter is trained on, as inference would see it (reference training.md 2.3 with 2.6): the condition of
/// text2music, of real tokens only and with the timbre of silence; the context of silence; as target the latents of the
/// audio, drawn from the VAE's posterior as they were when the model was trained. The draw depends on nothing but the
/// audio, so the same audio gives the same file.
/// Reports Stage::kConditions. Throws kBadArgument for audio below one frame or beyond the silence table and for a
/// token outside the vocabulary, kNotFinite, kCancelled.
TrainingSample prepare_sample(Renderer& renderer, const PreparationJob& job, const Control& control);

}  // namespace carillon
