#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// x [..., in] weight [out, in]^T + bias [out]: [..., out]; the bias may be undefined.
/// Bfloat16 CPU tensors on a machine with AVX512-BF16 take hand-written ways that sum in float32: few rows stream the
/// weight once (memory decides the time), more rows run through tiles (arithmetic does). All else, and whatever has
/// to be differentiated, is linear_reference.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The same by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace carillon::kernels
