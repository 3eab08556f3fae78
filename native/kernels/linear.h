#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"

namespace carillon::kernels {

/// Returns x weight^T + bias, [..., out], for x [..., in], weight [out, in] and bias [out], which may be undefined. The
/// CPU kernels sum in float32. Products of few rows are limited by memory bandwidth, so kernels read the weight only
/// once. With AVX512-BF16 they multiply bfloat16 by bfloat16. With AVX2 or NEON they multiply inputs of other types by
/// a bfloat16 weight, and inputs of any type by a quantized weight. Products of more rows use tiles, or libtorch with a
/// part of the weight at a time. All other inputs, and those that require gradients, use linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Reference for linear(), computed by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() takes no longer with `weight` in its stored type than with `weight` converted to `dtype`. Inputs
/// have `dtype` and are on `device`.
bool is_stored_form_fast(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

}  // namespace carillon::kernels
