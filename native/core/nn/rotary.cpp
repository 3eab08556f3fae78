#include "core/nn/rotary.h"

#include <ATen/ATen.h>

namespace carillon::nn {

Rotary Rotary::make(int64_t positions, int64_t head_dim, double theta, const Placement& placement) {
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);
  const at::Tensor frequencies = at::pow(at::Scalar(theta), exponents).reciprocal();
  const at::Tensor angles = at::outer(at::arange(positions, at::kFloat), frequencies);
  return {angles.cos().to(placement.device, placement.dtype), angles.sin().to(placement.device, placement.dtype)};
}

Rotary Rotary::slice(int64_t first, int64_t count) const { return {cos.narrow(0, first, count), sin.narrow(0, first, count)}; }

Rotary Rotary::at(const at::Tensor& positions) const {
  const at::Tensor index = positions.to(cos.device()).flatten();
  std::vector<int64_t> shape = positions.sizes().vec();
  shape.push_back(cos.size(1));
  return {cos.index_select(0, index).view(shape), sin.index_select(0, index).view(shape)};
}

at::Tensor apply_rotary(const at::Tensor& x, const Rotary& rotary) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor cos = rotary.cos.unsqueeze(-2), sin = rotary.sin.unsqueeze(-2);
  return at::cat({at::addcmul(first * cos, second, sin, -1), at::addcmul(second * cos, first, sin)}, -1);
}

}  // namespace carillon::nn
