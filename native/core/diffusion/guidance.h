#pragma once
#include <ATen/core/Tensor.h>

#include "core/runtime/choice.h"

namespace carillon {

/// Variants of classifier-free guidance: adaptive projected (APG), plain (CFG), and angle-based (ADG).
enum class GuidanceVariant { kApg, kCfg, kAdg, kAdgNormed, kAdgUnlimited };

template <>
inline constexpr Choices<GuidanceVariant> kChoices<GuidanceVariant> = {{"apg_classic", GuidanceVariant::kApg},
                                                                       {"cfg", GuidanceVariant::kCfg},
                                                                       {"adg", GuidanceVariant::kAdg},
                                                                       {"adg_w_norm", GuidanceVariant::kAdgNormed},
                                                                       {"adg_wo_clip", GuidanceVariant::kAdgUnlimited}};

/// Adaptive projected guidance (APG; Sadat et al., 2024) with momentum. Limits the norm of the guidance and scales its
/// component parallel to the conditional velocity. Norms and projections are over time, for each item and channel. Each
/// denoising run needs its own object, because the object holds the momentum.
class AdaptiveProjectedGuidance {
 public:
  struct Options {
    double eta = 0.0;             // factor of the parallel component
    double momentum = -0.75;      // factor of the earlier guidance that is added
    double norm_threshold = 2.5;  // limit of the norm; 0: none
  };

  explicit AdaptiveProjectedGuidance(const Options& options) : options_(options) {}

  /// Returns the guided velocity [B, T, C] in float32 from two velocities of this shape. With `scale` 1 it is
  /// `conditional`.
  at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

 private:
  Options options_;
  at::Tensor sum_;  // [B, T, C], guidance with momentum; undefined before the first call
};

/// Plain classifier-free guidance.
at::Tensor guide_plainly(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

/// Adaptive dual guidance (ADG) of one of the three ADG variants. Rotates the predicted data away from the
/// unconditional prediction. kAdg and kAdgNormed limit the angle of each frame. kAdgNormed also keeps the norm of each channel over
/// time. `latents` [B, T, C] is the state at flow time `time`. All tensors are float32.
at::Tensor guide_by_angle(GuidanceVariant variant, const at::Tensor& latents, const at::Tensor& conditional,
                          const at::Tensor& unconditional, double time, double scale);

}  // namespace carillon
