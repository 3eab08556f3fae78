#include "core/diffusion/solver.h"

#include "core/runtime/error.h"

namespace carillon {

std::unique_ptr<Solver> make_solver(InferMethod method) {
  switch (method) {
    case InferMethod::kOde:
      return make_euler();
    case InferMethod::kSde:
      return make_sde();
    case InferMethod::kHeun:
      return make_heun();
    case InferMethod::kDpm3m:
      return make_dpm3m();
    case InferMethod::kStork4:
      return make_stork4();
  }
  fail(ErrorCode::kInternal, "unknown solver");
}

}  // namespace carillon
