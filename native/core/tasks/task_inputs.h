#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "core/diffusion/sampler.h"
#include "core/dit/ace_step.h"
#include "core/tasks/context.h"
#include "core/tasks/recordings.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// What a task makes of a job for the model: of one item that all share, or of every item.
struct TaskInputs {
  ContextInputs context;
  std::optional<Repaint> repaint;  // where a window leaves something of the source
};

/// The inputs of the job's task. `source` as encode_recordings gives it. At least 128 frames (or the whole silence
/// table) are rendered, what is missing being silence. Throws kBadArgument beyond the silence table.
TaskInputs task_inputs(const AceStep& model, const RenderJob& job, const std::optional<Source>& source,
                       const RendererInfo& info);

/// A run for `batch` items. `states` [1 or batch, L, E] are the task's own; `plain_states`, of the text prompt of
/// text2music, make the conditions that follow once the cover strength is used up: the same chunk mask over silence.
/// Undefined: none follow.
DenoiseJob denoise_job(const AceStep& model, const TaskInputs& inputs, const Denoise& denoise, const Guidance& guidance,
                       const at::Tensor& states, const at::Tensor& plain_states, int64_t batch);

}  // namespace carillon
