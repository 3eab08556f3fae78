#include "core/tasks/text2music.h"

#include <ATen/ATen.h>

namespace carillon {
namespace {

/// Latents of the job's codes, completed with silence: [B, frames, C].
at::Tensor code_hints(const AceStep& model, const RenderJob& job, int64_t frames) {
  std::vector<at::Tensor> rows;
  for (const auto& codes : job.audio_codes) rows.push_back(at::tensor(codes, at::kLong));
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.embed(at::stack(rows).to(model.placement.device)));
  return at::cat({hints, model.silence_of(frames - hints.size(1)).expand({hints.size(0), -1, -1})}, 1);
}

}  // namespace

ContextInputs hinted_source(const at::Tensor& hints) {
  return {.source = hints,
          .chunk_mask = at::ones_like(hints),
          .is_cover = at::ones({hints.size(0)}, hints.options().dtype(at::kBool)),
          .hints = hints};
}

ContextInputs text2music_source(const AceStep& model, const RenderJob& job, int64_t frames) {
  const int64_t total = rendered_frames(model, frames);
  if (!job.audio_codes.empty()) return hinted_source(code_hints(model, job, total));
  const at::Tensor silence = model.silence_of(total);
  return {.source = silence,
          .chunk_mask = at::ones_like(silence),
          .is_cover = at::zeros({silence.size(0)}, silence.options().dtype(at::kBool)),
          .hints = at::Tensor()};
}

}  // namespace carillon
