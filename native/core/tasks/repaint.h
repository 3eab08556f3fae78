#pragma once
#include <optional>

#include "core/diffusion/repaint.h"
#include "core/dit/ace_step.h"
#include "core/tasks/context.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// A recording [1, T, C] whose window (`inside` [1, T] bool) is silence: what the model hears is what stays.
ContextInputs repaint_source(const AceStep& model, const at::Tensor& latents, const at::Tensor& inside,
                             const at::Tensor& chunk_mask);

/// How firmly a window's surroundings are held.
struct RepaintHold {
  double injection_ratio;    // share of the steps after which the surroundings are put back
  int64_t crossfade_frames;  // of the finished latents, outside either edge; 0: cut, and the decoder joins them
  double crossfade_seconds;  // of the waveforms, outside either edge
  bool keeps_waveform;       // the surroundings are the source's own samples, else its latents decoded
};

/// balanced: the stronger the repainting, the less is held. conservative is balanced at strength 0. aggressive holds
/// nothing while denoising and leaves the seam to the decoder; its fade is of the level alone.
RepaintHold repaint_hold(const Edit& edit);

/// Holds what lies outside `inside` [B, T] bool to `latents` [B, T, C] float32; nothing where all is inside.
std::optional<Repaint> hold_outside(const at::Tensor& latents, const at::Tensor& inside, const RepaintHold& hold);

}  // namespace carillon
