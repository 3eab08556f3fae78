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

ContextInputs text2music_source(const AceStep& model, const RenderJob& job) {
  const int64_t frames = rendered_frames(model, text2music_frames(model, job));
  const bool has_codes = !job.audio_codes.empty();
  const at::Tensor source = has_codes ? code_hints(model, job, frames) : model.silence_of(frames);
  return {.source = source,
          .chunk_mask = at::ones_like(source),
          .is_cover = at::full({source.size(0)}, has_codes, source.options().dtype(at::kBool)),
          .hints = has_codes ? source : at::Tensor()};
}

}  // namespace carillon
