#pragma once
#include "core/dit/ace_step.h"
#include "core/tasks/context.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// A song that follows `hints` [B, T, C], the latents that audio codes stand for. Everything is to be generated.
ContextInputs hinted_source(const at::Tensor& hints);

/// A job of `frames` without a source: silence [1, T, C], or where it has audio codes the latents that these stand for
/// [B, T, C]. Everything is to be generated. Throws kBadArgument for a code outside the codebook.
ContextInputs text2music_source(const AceStep& model, const RenderJob& job, int64_t frames);

}  // namespace carillon
