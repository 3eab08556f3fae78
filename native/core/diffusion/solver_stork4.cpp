#include <ATen/ATen.h>

#include "core/diffusion/solver.h"

namespace carillon {
namespace {

/// STORK-4 (Tan et al., 2025): a fourth-order stabilised Runge-Kutta method. Its stages use a quadratic Taylor
/// polynomial of the velocity in time, from divided differences of past velocities. A fourth-order method integrates
/// this polynomial exactly, so this code computes the integral without stages. The first two steps use polynomials of
/// degree 0 and 1. Each step evaluates the model once.
class Stork4 final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    const double span = step.next - step.time;  // negative
    if (span == 0.0) return state;              // custom times on turbo models may repeat
    at::Tensor next = state + span * velocity, slope;
    if (last_.defined()) {
      slope = (velocity - last_) / (step.time - last_time_);
      at::Tensor derivative = slope;
      if (last_slope_.defined()) {
        const at::Tensor curve = (slope - last_slope_) / (step.time - time_before_);  // half the second derivative
        derivative = slope + (step.time - last_time_) * curve;
        next = next + span * span * span / 3 * curve;
      }
      next = next + span * span / 2 * derivative;
    }
    last_slope_ = slope;
    last_ = velocity.clone();
    time_before_ = last_time_;
    last_time_ = step.time;
    return next;
  }

 private:
  at::Tensor last_, last_slope_;  // previous velocity and its divided difference; undefined at first
  double last_time_ = 0, time_before_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_stork4() { return std::make_unique<Stork4>(); }

}  // namespace carillon
