#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"

namespace carillon::kernels {

/// Returns x * weight^T + bias, [..., out], for x [..., in], weight [out, in] and bias [out]. bias may be undefined.
/// The CPU kernels sum in float32.
///
/// Memory bandwidth limits products of few rows, so the kernels read the weight only once. AVX512-BF16 kernels multiply
/// bfloat16 by a bfloat16 or quantized weight. AVX2 and NEON kernels multiply other inputs by a bfloat16 weight, and any
/// input by a quantized weight. Products of more rows use tiles, or libtorch with one part of the weight at a time. All
/// other inputs, and inputs that require gradients, use linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Reference for linear(), computed by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() is at least as fast with `weight` as with a copy of `weight` converted to `dtype`. The inputs have
/// `dtype` and are on `device`.
bool is_stored_form_fast(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

}  // namespace carillon::kernels
