#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"

namespace carillon::kernels {

/// x [..., in] weight [out, in]^T + bias [out]: [..., out]; the bias may be undefined. The CPU kernels sum in float32.
/// Products of few rows are limited by memory bandwidth, so kernels read the weight only once. They support bfloat16
/// times bfloat16 with AVX512-BF16, and weights in bfloat16 or codes times another type with AVX2 or NEON. Products of
/// more rows use tiles, or libtorch with a part of the weight at a time. All other inputs, and those that require
/// gradients, use linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Reference for linear(), computed by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() takes no longer with `weight` in its stored type than with `weight` converted to `dtype`. Inputs
/// have `dtype` and are on `device`.
bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

}  // namespace carillon::kernels
