#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"

namespace carillon::kernels {

/// x [..., in] weight [out, in]^T + bias [out]: [..., out]; the bias may be undefined.
/// Hand-written ways on the CPU, which sum in float32: few rows stream the weight once (memory decides the time), be it
/// bfloat16 beside bfloat16 on a machine with AVX512-BF16, or bfloat16 and codes beside another type on one with AVX2
/// or NEON; more rows run through tiles, or through libtorch beside a part of the weight at a time. All else, and
/// whatever has to be differentiated, is linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// The same by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() multiplies a stored weight by inputs of `dtype` on `device` as fast as one of that type.
bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

}  // namespace carillon::kernels
