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

int64_t text2music_frames(const AceStep& model, const RenderJob& job) {
  if (job.audio_codes.empty()) return job.frames;
  return static_cast<int64_t>(job.audio_codes[0].size()) * model.config.pool_window_size;
}

ContextInputs hinted_source(const at::Tensor& hints) {
  return {.source = hints,
          .chunk_mask = at::ones_like(hints),
          .is_cover = at::ones({hints.size(0)}, hints.options().dtype(at::kBool)),
          .hints = hints};
}

ContextInputs text2music_source(const AceStep& model, const RenderJob& job) {
  const int64_t frames = rendered_frames(model, text2music_frames(model, job));
  if (!job.audio_codes.empty()) return hinted_source(code_hints(model, job, frames));
  const at::Tensor silence = model.silence_of(frames);
  return {.source = silence,
          .chunk_mask = at::ones_like(silence),
          .is_cover = at::zeros({silence.size(0)}, silence.options().dtype(at::kBool)),
          .hints = at::Tensor()};
}

}  // namespace carillon
