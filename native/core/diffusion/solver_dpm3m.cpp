#include <ATen/ATen.h>

#include "core/diffusion/solver.h"

namespace carillon {
namespace {

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

}  // namespace

std::unique_ptr<Solver> make_dpm3m() { return std::make_unique<Dpm3m>(); }

}  // namespace carillon
