#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Adaptive projected guidance (APG; Sadat et al., 2024) with momentum: drops the component of the guidance parallel to
/// the conditional velocity and limits its norm. Norms and projections are over time, one value per item and channel.
/// Use one object per denoising run, because it holds the momentum.
class AdaptiveProjectedGuidance {
 public:
  /// Velocities [B, T, C] in float32; `scale` 1 returns `conditional`. The result is [B, T, C] in float32.
  at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

 private:
  at::Tensor momentum_;  // [B, T, C], undefined before the first call
};

/// Angle-based dynamic guidance (ADG): rotates the predicted data away from the unconditional prediction by a limited
/// angle per frame. `latents` [B, T, C] are the state at flow time `time`; all tensors float32.
at::Tensor guide_by_angle(const at::Tensor& latents, const at::Tensor& conditional, const at::Tensor& unconditional,
                          double time, double scale);

}  // namespace carillon
