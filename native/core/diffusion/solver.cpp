#include "core/diffusion/solver.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Euler's method: x - (t - t') * v.
class Euler final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    return state - (step.time - step.next) * velocity;
  }
};

/// Predicts the data from state x and velocity v, then adds fresh noise to it:
/// next * noise + (1 - next) * (x - time * v).
class Sde final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    const at::Tensor data = state - step.time * velocity;
    return step.next == 0.0 ? data : step.next * step.noise() + (1.0 - step.next) * data;
  }
};

/// Heun's second-order method (1900): uses the mean of the velocities at both ends of the step. Two evaluations per
/// step, except for the last step, which has one because the model is not evaluated at time 0.
class Heun final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    const double span = step.time - step.next;
    const at::Tensor predicted = state - span * velocity;
    if (step.next == 0.0) return predicted;
    const at::Tensor half_way = state - span / 2 * velocity;  // velocity_at_next overwrites `velocity`
    return half_way - span / 2 * step.velocity_at_next(predicted);
  }
};

/// Third-order Adams-Bashforth method with the weights for equal steps. acestep.cpp calls it dpm3m. The first step has
/// order 1, the second has order 2. Evaluates the model once per step.
class Dpm3m final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    at::Tensor mean = velocity;
    if (before_.defined()) {
      mean = 23.0 / 12.0 * velocity - 16.0 / 12.0 * last_ + 5.0 / 12.0 * before_;
    } else if (last_.defined()) {
      mean = 1.5 * velocity - 0.5 * last_;
    }
    const at::Tensor next = state - (step.time - step.next) * mean;
    before_ = last_;
    last_ = velocity.clone();
    return next;
  }

 private:
  at::Tensor last_, before_;  // velocities of the two previous steps, undefined at first
};

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

std::unique_ptr<Solver> make_solver(InferMethod method) {
  switch (method) {
    case InferMethod::kOde:
      return std::make_unique<Euler>();
    case InferMethod::kSde:
      return std::make_unique<Sde>();
    case InferMethod::kHeun:
      return std::make_unique<Heun>();
    case InferMethod::kDpm3m:
      return std::make_unique<Dpm3m>();
    case InferMethod::kStork4:
      return std::make_unique<Stork4>();
  }
  fail(ErrorCode::kInternal, "unknown solver");
}

}  // namespace carillon
