#include <ATen/ATen.h>

#include "core/diffusion/solver.h"

namespace carillon {
namespace {

/// Euler's method: x - (t - t') * v.
class Euler final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    return state - (step.time - step.next) * velocity;
  }
};

}  // namespace

std::unique_ptr<Solver> make_euler() { return std::make_unique<Euler>(); }

}  // namespace carillon
