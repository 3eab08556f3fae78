#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "core/runtime/choice.h"

namespace carillon {

/// Solver of the flow ODE or SDE.
enum class InferMethod { kOde, kSde, kHeun, kDpm3m, kStork4 };

template <>
inline constexpr Choices<InferMethod> kChoices<InferMethod> = {{"ode", InferMethod::kOde},
                                                               {"sde", InferMethod::kSde},
                                                               {"heun", InferMethod::kHeun},
                                                               {"dpm3m", InferMethod::kDpm3m},
                                                               {"stork4", InferMethod::kStork4}};

/// A step from flow time `time` down to `next`. The last step ends at 0. The reference differs in one case: on base
/// models its SDE solver ignores the shift and steps to 1 - (k + 1) / N.
struct SolverStep {
  double time, next;
  /// Evaluates the model at time `next`, which must be above 0. The result overwrites the previous velocity.
  std::function<at::Tensor(const at::Tensor& state)> velocity_at_next;
  /// Fresh noise in the shape of the state.
  std::function<at::Tensor()> noise;
};

/// A solver for one run. It may store velocities of earlier steps.
class Solver {
 public:
  virtual ~Solver() = default;
  /// Advances `state` from `step.time` to `step.next`. `velocity` is the model's output for `state`; both are [B, T, C]
  /// float32. The next evaluation overwrites `velocity`.
  virtual at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) = 0;
};

std::unique_ptr<Solver> make_solver(InferMethod method);

}  // namespace carillon
