#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// x + sin(frequency x)^2 gain for x [B, C, T] on any device, in x's dtype. frequency and gain are float32 [C]. With
/// gradients, both passes work on pieces that fit the cache, and only the inputs are saved for the backward pass.
/// Without gradients, the result on the CPU is bit-equal to the reference, because networks with random weights amplify
/// rounding about 1,000 times.
at::Tensor snake(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

/// Reference for snake, computed in float32; frequency and gain broadcast against x. The CPU kernels instead compute
/// snake in the epilogue of a product (vector_kernels.h).
at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

}  // namespace carillon::kernels
