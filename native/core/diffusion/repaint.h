#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carillon {

/// Keeping what lies outside a window while the inside is generated anew.
struct Repaint {
  at::Tensor mask;   // [B, T] bool, true inside the window
  at::Tensor clean;  // [B, T, C] float32, the source's latents, unmasked
  /// Share of the steps after which the outside is put back to the source at that step's noise level.
  double injection_ratio = 0;
  /// Length of the cross-fade outside either edge, applied to the finished latents; 0: none.
  int64_t crossfade_frames = 0;
};

/// `state` [B, T, C] inside the window, time * noise + (1 - time) * clean outside.
at::Tensor inject_source(const at::Tensor& state, const Repaint& repaint, const at::Tensor& noise, double time);

/// 1 inside the window, falling linearly to 0 over `frames` frames outside either edge (interior points of a line
/// over frames + 2 points; shortened where the clip ends sooner). mask [B, T] bool -> [B, T] float32.
at::Tensor soft_window(const at::Tensor& mask, int64_t frames);

/// The finished latents mixed with the source by soft_window. Items whose window covers everything are unchanged.
at::Tensor blend_edges(const at::Tensor& latents, const Repaint& repaint);

}  // namespace carillon
