#pragma once
#include "core/dit/ace_step.h"
#include "core/tasks/context.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// The task's source: silence, or where the job has audio codes the latents these stand for. Everything is to be
/// generated. At least 128 frames (or the whole silence table) are rendered, as the model knows no shorter songs.
/// Throws kBadArgument for a code outside the codebook and for a length beyond the silence table.
ContextInputs text2music_source(const AceStep& model, const RenderJob& job);

/// Frames the job's audio has: what was asked for, or what the audio codes say.
int64_t text2music_frames(const AceStep& model, const RenderJob& job);

}  // namespace carillon
