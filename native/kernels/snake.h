#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// x + sin(frequency x)^2 gain of x [B, C, T], in x's dtype, on any device. frequency and gain are float32 [C]. Where
/// something is to be differentiated, both passes go over pieces that stay in the cache, and only x is kept; else it is
/// the reference, on the CPU to the last bit: networks with random weights amplify rounding a thousandfold.
at::Tensor snake(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

/// The same, computed in float32; frequency and gain broadcast against x. The CPU kernels compute it in the epilogue of
/// a product (tile.h).
at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain);

}  // namespace carillon::kernels
