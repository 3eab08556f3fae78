#include "core/diffusion/velocity.h"

#include <ATen/ATen.h>

namespace carillon {
namespace {

constexpr double kEpsilon = 1e-10;  // as in the reference

at::Tensor norm_of(const at::Tensor& x) { return at::linalg_vector_norm(x, 2, {1, 2}, /*keepdim=*/true) + kEpsilon; }

}  // namespace

at::Tensor VelocityFilter::begin_step(const at::Tensor& velocity, const at::Tensor& state) {
  const at::Tensor filtered = smoothed(limited(velocity, state));
  if (smoothing_ > 0.0) previous_ = filtered.clone();
  return filtered;
}

at::Tensor VelocityFilter::end_step(const at::Tensor& velocity, const at::Tensor& state) {
  const at::Tensor filtered = smoothed(limited(velocity, state));
  if (smoothing_ > 0.0) previous_ = (previous_ + filtered) / 2;
  return filtered;
}

at::Tensor VelocityFilter::limited(const at::Tensor& velocity, const at::Tensor& state) const {
  if (norm_limit_ <= 0.0) return velocity;
  return velocity * (norm_limit_ * norm_of(state) / norm_of(velocity)).clamp_max(1.0);
}

at::Tensor VelocityFilter::smoothed(const at::Tensor& velocity) const {
  return previous_.defined() ? (1.0 - smoothing_) * velocity + smoothing_ * previous_ : velocity;
}

}  // namespace carillon
