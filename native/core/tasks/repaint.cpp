#include "core/tasks/repaint.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon {

ContextInputs repaint_source(const AceStep& model, const at::Tensor& latents, const at::Tensor& inside,
                             const at::Tensor& chunk_mask) {
  const at::Tensor silence = model.silence_of(latents.size(1)).to(latents.scalar_type());
  return {.source = at::where(inside.unsqueeze(-1), silence, latents),
          .chunk_mask = chunk_mask.unsqueeze(-1).expand_as(latents),
          .is_cover = at::zeros({1}, latents.options().dtype(at::kBool)),
          .hints = {}};
}

RepaintHold repaint_hold(const Edit& edit) {
  constexpr double kLongestFadeFrames = 25, kLongestFadeSeconds = 0.05;
  double strength = edit.repaint_strength;
  switch (edit.repaint_mode) {
    case RepaintMode::kConservative:
      strength = 0.0;
      break;
    case RepaintMode::kBalanced:
      break;
    case RepaintMode::kAggressive:
      return {.injection_ratio = 0,
              .crossfade_frames = 0,
              .crossfade_seconds = kLongestFadeSeconds,
              .keeps_waveform = false};
  }
  const double hold = 1.0 - strength;
  return {.injection_ratio = hold,
          .crossfade_frames = std::lrint(kLongestFadeFrames * hold),  // half to even
          .crossfade_seconds = kLongestFadeSeconds * hold,
          .keeps_waveform = true};
}

std::optional<Repaint> hold_outside(const at::Tensor& latents, const at::Tensor& inside, const RepaintHold& hold) {
  if (inside.all().item<bool>()) return std::nullopt;
  return Repaint{.mask = inside,
                 .clean = latents,
                 .injection_ratio = hold.injection_ratio,
                 .crossfade_frames = hold.crossfade_frames};
}

}  // namespace carillon
