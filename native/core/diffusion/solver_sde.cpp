#include <ATen/ATen.h>

#include "core/diffusion/solver.h"

namespace carillon {
namespace {

/// Predicts the data from state x and velocity v, then adds fresh noise to it:
/// next * noise + (1 - next) * (x - time * v).
class Sde final : public Solver {
 public:
  at::Tensor advance(const at::Tensor& state, const at::Tensor& velocity, const SolverStep& step) override {
    const at::Tensor data = state - step.time * velocity;
    return step.next == 0.0 ? data : step.next * step.noise() + (1.0 - step.next) * data;
  }
};

}  // namespace

std::unique_ptr<Solver> make_sde() { return std::make_unique<Sde>(); }

}  // namespace carillon
