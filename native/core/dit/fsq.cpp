#include "core/dit/fsq.h"

#include <ATen/ATen.h>

#include <string>

#include "core/runtime/error.h"

namespace carillon {

Fsq::Fsq(std::vector<int64_t> levels) : levels_(std::move(levels)) {
  for (const int64_t level : levels_) {
    if (level < 2) fail(ErrorCode::kBadArgument, "a quantiser level must be at least 2, not " + std::to_string(level));
    basis_.push_back(codebook_size_);
    codebook_size_ *= level;
  }
}

at::Tensor Fsq::top_levels(const at::Device& device) const { return at::tensor(levels_, at::kLong).to(device) - 1; }

at::Tensor Fsq::bounded(const at::Tensor& z) const {
  const at::Tensor soft = 1.0 + 1.0 / top_levels(z.device()).to(at::kFloat);
  return (soft * (z.to(at::kFloat) / soft).tanh()).clamp(-1.0, 1.0);
}

at::Tensor Fsq::quantize(const at::Tensor& z) const {
  const at::Tensor level = (top_levels(z.device()) * (bounded(z) + 1.0) / 2.0 + 0.5).floor().to(at::kLong);
  return (level * at::tensor(basis_, at::kLong).to(z.device())).sum(-1);
}

at::Tensor Fsq::straight_through(const at::Tensor& z) const {
  const at::Tensor soft = bounded(z);
  return soft + (values(quantize(z)) - soft).detach();
}

at::Tensor Fsq::values(const at::Tensor& indices) const {
  if (indices.numel() > 0) {
    const int64_t lowest = indices.min().item<int64_t>(), highest = indices.max().item<int64_t>();
    if (lowest < 0 || highest >= codebook_size_) {
      fail(ErrorCode::kBadArgument, "audio code " + std::to_string(lowest < 0 ? lowest : highest) +
                                        " is outside 0 .. " + std::to_string(codebook_size_ - 1));
    }
  }
  const at::Tensor levels = at::tensor(levels_, at::kLong).to(indices.device());
  const at::Tensor basis = at::tensor(basis_, at::kLong).to(indices.device());
  const at::Tensor level = indices.unsqueeze(-1).div(basis, "floor").remainder(levels);
  return 2.0 * level.to(at::kFloat) / (levels - 1).to(at::kFloat) - 1.0;
}

}  // namespace carillon
