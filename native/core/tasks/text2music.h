#pragma once
#include "core/dit/ace_step.h"
#include "core/tasks/context.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// A song that follows `hints` [B, T, C], the latents that audio codes stand for. Everything is to be generated.
ContextInputs hinted_source(const at::Tensor& hints);

/// A job without a source: silence [1, T, C], or where it has audio codes the latents that these stand for
/// [B, T, C]. Everything is to be generated. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_source(const AceStep& model, const RenderJob& job);

/// Frames such a job's audio has: what was asked for, or what the audio codes say.
int64_t text2music_frames(const AceStep& model, const RenderJob& job);

}  // namespace carillon
