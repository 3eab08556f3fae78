#include "core/diffusion/guidance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace carillon {
namespace {

// Constants of the reference implementation.
constexpr double kMaxAngle = 3.14 / 6, kMaxAngleNormed = 3.14 / 3;  // radians; 3.14 instead of pi, as in the reference
constexpr double kScaleOffset = 1e-3;
constexpr double kSmallestSine = 1e-3;
constexpr int64_t kTime = 1, kChannel = 2;

at::Tensor norm_over(const at::Tensor& x, int64_t dim) { return at::linalg_vector_norm(x, 2, dim, /*keepdim=*/true); }

/// Returns the component of `x` that is orthogonal to `direction` along the time axis, plus `eta` times the parallel
/// one. Computed in float64: the orthogonal component is small, because `x` and `direction` are nearly parallel.
at::Tensor project(const at::Tensor& x, const at::Tensor& direction, double eta) {
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor along = direction.to(at::kDouble);
  const at::Tensor unit = along / norm_over(along, kTime).clamp_min(1e-12);
  const at::Tensor parallel = (wide * unit).sum(kTime, /*keepdim=*/true) * unit;
  return at::sub(wide, parallel, 1.0 - eta).to(x.scalar_type());
}

}  // namespace

// Adaptive projected guidance (APG).
at::Tensor AdaptiveProjectedGuidance::guide(const at::Tensor& conditional, const at::Tensor& unconditional,
                                            double scale) {
  const at::Tensor difference = conditional - unconditional;
  const auto [eta, momentum, threshold] = options_;
  const double norm_threshold = std::min<double>(threshold, std::numeric_limits<float>::max());
  sum_ = sum_.defined() ? difference + momentum * sum_ : difference;
  at::Tensor limited = sum_;
  if (norm_threshold > 0.0) limited = sum_ * (norm_threshold / norm_over(sum_, kTime)).clamp_max(1.0);
  return conditional + (scale - 1.0) * project(limited, conditional, eta);
}

at::Tensor guide_plainly(const at::Tensor& conditional, const at::Tensor& unconditional, double scale) {
  return unconditional + scale * (conditional - unconditional);
}

// Adaptive dual guidance (ADG).
at::Tensor guide_by_angle(GuidanceVariant variant, const at::Tensor& latents, const at::Tensor& conditional,
                          const at::Tensor& unconditional, double time, double scale) {
  const double weight = std::max(scale - 1.0, 0.0) + kScaleOffset;
  const at::Tensor p = latents - time * conditional;    // predicted data with conditions
  const at::Tensor q = latents - time * unconditional;  // predicted data without conditions

  const at::Tensor p64 = p.to(at::kDouble), q64 = q.to(at::kDouble);
  const at::Tensor lengths = norm_over(p64, kChannel) * norm_over(q64, kChannel);
  const at::Tensor cosine = (p64 * q64).sum(kChannel, true) / lengths.clamp_min(1e-8);
  const at::Tensor angle = cosine.clamp(-1.0, 1.0).acos();
  at::Tensor turned = weight * angle;
  if (variant != GuidanceVariant::kAdgUnlimited) {
    turned = turned.clamp_max(variant == GuidanceVariant::kAdgNormed ? kMaxAngleNormed : kMaxAngle);
  }

  const at::Tensor apart = p - q;
  const at::Tensor perpendicular = apart - (apart * q).sum(kChannel, true) / ((q * q).sum(kChannel, true) + 1e-8) * q;
  const at::Tensor sine = angle.sin();
  const at::Tensor stretch = at::where(sine > kSmallestSine, turned.sin() / sine, at::full_like(sine, weight));
  at::Tensor guided = turned.cos().to(p.scalar_type()) * p + perpendicular * stretch.to(p.scalar_type());
  if (variant == GuidanceVariant::kAdgNormed) {
    guided = guided * (norm_over(p, kTime) / norm_over(guided, kTime).clamp_min(1e-12));
  }
  return (latents - guided) / time;
}

}  // namespace carillon
