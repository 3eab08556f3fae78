#include "core/tasks/task_inputs.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"
#include "core/tasks/cover.h"
#include "core/tasks/repaint.h"
#include "core/tasks/stems.h"
#include "core/tasks/text2music.h"

namespace carillon {
namespace {

/// The source's latents, completed with silence to what is rendered: [1, T, C] float32 on the model's device.
at::Tensor latents_to_render(const AceStep& model, const Source& source) {
  const int64_t total = rendered_frames(model, source.frames);
  if (!source.latents.defined()) return model.silence_of(total).to(at::kFloat);
  const at::Tensor silence = model.silence_of(total - source.frames).to(at::kFloat);
  return at::cat({source.latents.to(model.placement.device), silence}, 1);
}

/// The window over `frames` rendered frames, of which the song is the first `source.frames`: what is rendered beyond
/// a song that the window reaches the end of is inside, too.
at::Tensor inside_window(const Source& source, int64_t frames, int64_t samples_per_frame, at::Device device) {
  FrameRange range = frames_inside(source.window, source.frames, samples_per_frame);
  if (range.end == source.frames) range.end = frames;
  return window_mask(range, frames, device);
}

TaskInputs windowed_inputs(const AceStep& model, const RenderJob& job, const Source& source, const at::Tensor& latents,
                           int64_t samples_per_frame) {
  const at::Tensor inside = inside_window(source, latents.size(1), samples_per_frame, latents.device());
  const at::Tensor told = inside.to(latents.scalar_type());
  const at::Tensor chunk_mask = job.edit.chunk_mask == ChunkMask::kExplicit ? told : at::ones_like(told);
  return {.context = job.task == Task::kRepaint ? repaint_source(model, latents, inside, chunk_mask)
                                                : stems_source(latents, chunk_mask),
          .repaint = hold_outside(latents, inside, repaint_hold(job.edit))};
}

}  // namespace

TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<Source>& source,
                       const RendererInfo& info) {
  if (!source) return {.context = text2music_source(model, job, song_frames(job, info)), .repaint = {}};
  const at::Tensor latents = latents_to_render(model, *source);
  switch (job.task) {
    case Task::kText2Music:
      break;  // reads no source
    case Task::kCover:
      return {.context = cover_source(latents), .repaint = {}};
    case Task::kRepaint:
    case Task::kLego:
      return windowed_inputs(model, job, *source, latents, info.samples_per_frame);
    case Task::kExtract:
    case Task::kComplete:
      return {.context = stems_source(latents, at::ones({1, latents.size(1)}, latents.options())), .repaint = {}};
  }
  fail(ErrorCode::kInternal, "text2music was given a source");
}

DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const at::Tensor& states, const at::Tensor& plain_states, int64_t batch) {
  const auto for_all = [&](const at::Tensor& x) { return x.expand({batch, -1, -1}); };
  std::optional<Conditions> plain;
  if (plain_states.defined()) {
    const ContextInputs silent{
        .source = model.silence_of(inputs.context.source.size(1)).expand_as(inputs.context.source),
        .chunk_mask = inputs.context.chunk_mask,
        .is_cover = at::zeros_like(inputs.context.is_cover),
        .hints = {}};
    plain = {for_all(plain_states), for_all(make_context(model, silent))};
  }
  return {.conditions = {for_all(states), for_all(make_context(model, inputs.context))},
          .null_condition = model.null_condition,
          .denoise = denoise,
          .guidance = guidance,
          .conditions_after_cover = plain,
          .cover_source = for_all(inputs.context.source),
          .repaint = inputs.repaint};
}

}  // namespace carillon
