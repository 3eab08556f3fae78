#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// x + sin(frequency x)^2 gain, computed in float32, in x's dtype, on any device. frequency and gain are float32
/// and broadcast against x. The CPU kernels compute the same in the epilogue of a product (tile.h).
at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

}  // namespace carillon::kernels
