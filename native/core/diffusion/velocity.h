#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Steadies the velocities of one run, as in ACE-Step. Each run needs its own object.
class VelocityFilter {
 public:
  /// `norm_limit`: upper limit of a velocity's norm, as a multiple of the norm of its state; 0: no limit. Norms are
  /// over time and channels, for each item. `smoothing`: share of the previous step's velocity; 0: none.
  VelocityFilter(double norm_limit, double smoothing) : norm_limit_(norm_limit), smoothing_(smoothing) {}

  /// Filters the velocity at the beginning of a step. `velocity` and `state` are [B, T, C] float32. The result may
  /// share memory with `velocity`.
  at::Tensor begin_step(const at::Tensor& velocity, const at::Tensor& state);
  /// Filters the velocity at the end of the step (Heun's method). It is smoothed with the velocity of begin_step. The
  /// next step is smoothed with the mean of both.
  at::Tensor end_step(const at::Tensor& velocity, const at::Tensor& state);

 private:
  at::Tensor limited(const at::Tensor& velocity, const at::Tensor& state) const;
  at::Tensor smoothed(const at::Tensor& velocity) const;

  double norm_limit_, smoothing_;
  at::Tensor previous_;  // undefined before the first step and without smoothing
};

}  // namespace carillon
