#include "core/checkpoint/parameters.h"

#include <ATen/ATen.h>

#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"

namespace carillon {

at::Tensor Parameters::leaf(const std::string& name, at::IntArrayRef shape) {
  if (!has(name)) set(name, initial_(name, shape));
  const at::Tensor& leaf = leaves_.at(name);
  if (leaf.sizes() != shape) {
    fail(ErrorCode::kBadCheckpoint,
         "weight '" + name + "' has shape " + shape_text(leaf.sizes()) + ", expected " + shape_text(shape));
  }
  return leaf;
}

void Parameters::set(const std::string& name, const at::Tensor& value) {
  leaves_[name] = value.detach().to(device_, at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  leaves_[name].set_requires_grad(true);
}

int64_t Parameters::count() const {
  int64_t count = 0;
  for (const auto& [name, leaf] : leaves_) count += leaf.numel();
  return count;
}

}  // namespace carillon
