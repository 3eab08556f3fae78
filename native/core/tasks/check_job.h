#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "core/tasks/render_job.h"

namespace carillon {

/// Throws kBadArgument for a job whose parts contradict each other or do not fit the renderer, kSongTooLong for one
/// beyond the silence table.
void check_render_job(const RenderJob& job, const RendererInfo& info);

/// Throws kBadArgument unless `audio` is [channels, samples] float32 of at least one latent frame and finite,
/// kSongTooLong where it is longer than the silence table. `what` names it.
void check_recording(const std::string& what, const at::Tensor& audio, const RendererInfo& info);

}  // namespace carillon
