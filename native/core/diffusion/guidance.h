#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Adaptive projected guidance (APG; Sadat et al., 2024) with momentum. Limits the norm of the guidance and drops its
/// component parallel to the conditional velocity. Norms and projections are over time, for each item and channel. Each
/// denoising run needs its own object, because the object holds the momentum.
class AdaptiveProjectedGuidance {
 public:
  /// Returns the guided velocity [B, T, C] in float32 from two velocities of this shape. With `scale` 1 it is
  /// `conditional`.
  at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

 private:
  at::Tensor momentum_;  // [B, T, C], undefined before the first call
};

/// Adaptive dual guidance (ADG). Rotates the predicted data away from the unconditional prediction. The angle of
/// each frame is limited. `latents` [B, T, C] is the state at flow time `time`. All tensors are float32.
at::Tensor guide_by_angle(const at::Tensor& latents, const at::Tensor& conditional, const at::Tensor& unconditional,
                          double time, double scale);

}  // namespace carillon
