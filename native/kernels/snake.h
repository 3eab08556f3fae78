#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// x + sin(frequency x)^2 gain of x [B, C, T], in x's dtype, on any device. frequency and gain are float32 [C]. With
/// gradients, both passes work on pieces that fit the cache, and only x is kept. Without gradients it equals the
/// reference, on the CPU bit for bit, because networks with random weights amplify rounding about 1,000 times.
at::Tensor snake(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

/// Reference of snake, in float32; frequency and gain broadcast against x. The CPU kernels compute it in the epilogue
/// of a product (vector_kernels.h).
at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

}  // namespace carillon::kernels
