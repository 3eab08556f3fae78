#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"

namespace carillon::kernels {

/// x [..., in] weight [out, in]^T + bias [out]: [..., out]; the bias may be undefined.
/// CPU kernels, which sum in float32: few rows read the weight once, as memory bandwidth limits them: bfloat16 times
/// bfloat16 with AVX512-BF16, or bfloat16 and codes times another type with AVX2 or NEON. More rows use tiles, or
/// libtorch with a part of the weight at a time. All other inputs, and those that require gradients, use
/// linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// The same by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() multiplies a stored weight by inputs of `dtype` on `device` as fast as one of that type.
bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

}  // namespace carillon::kernels
