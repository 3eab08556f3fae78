#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace carillon {

/// How the state moves from one flow time to the next. Each has a file of its own.
enum class InferMethod { kOde, kSde, kHeun, kDpm3m, kStork4 };

/// A step from flow time `time` down to `next`; 0 after the last evaluation.
struct SolverStep {
  double time, next;
  /// A further evaluation: the velocity of a state at `next`, which is above 0. Overwrites earlier velocities.
  std::function<at::Tensor(const at::Tensor& state)> velocity_at_next;
  /// Fresh noise in the shape of the state.
  std::function<at::Tensor()> noise;
};

/// One run of a solver; it may remember earlier steps.
class Solver {
 public:
  virtual ~Solver() = default;
  /// The state at `step.next`. state, velocity (of the state at `step.time`) [B, T, C] float32. The velocity's memory is
  /// reused by the next evaluation.
  virtual at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) = 0;
};

std::unique_ptr<Solver> make_euler();
std::unique_ptr<Solver> make_sde();
std::unique_ptr<Solver> make_heun();
std::unique_ptr<Solver> make_dpm3m();
std::unique_ptr<Solver> make_stork4();

std::unique_ptr<Solver> make_solver(InferMethod method);

}  // namespace carillon
