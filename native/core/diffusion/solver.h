#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace carillon {

/// Solver of the flow ODE or SDE. Each solver has a file solver_*.cpp.
enum class InferMethod { kOde, kSde, kHeun, kDpm3m, kStork4 };

/// A step from flow time `time` down to `next`, which is 0 in the last step. Unlike this engine, the reference's SDE
/// solver uses 1 - (k + 1) / N as `next` on base models, regardless of the shift.
struct SolverStep {
  double time, next;
  /// Evaluates the model at time `next`, which must be above 0. The result reuses the buffer of earlier velocities.
  std::function<at::Tensor(const at::Tensor& state)> velocity_at_next;
  /// Fresh noise in the shape of the state.
  std::function<at::Tensor()> noise;
};

/// A solver for one run. It may store velocities of earlier steps.
class Solver {
 public:
  virtual ~Solver() = default;
  /// Returns the state at `step.next`. `state` and `velocity`, [B, T, C] float32, are those at `step.time`. The next
  /// evaluation overwrites the memory of `velocity`.
  virtual at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) = 0;
};

std::unique_ptr<Solver> make_euler();
std::unique_ptr<Solver> make_sde();
std::unique_ptr<Solver> make_heun();
std::unique_ptr<Solver> make_dpm3m();
std::unique_ptr<Solver> make_stork4();

std::unique_ptr<Solver> make_solver(InferMethod method);

}  // namespace carillon
