#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// One pass over the result y [B, C, T] of a convolution: plain = y + bias + residual, then snaked = snake(plain).
struct SnakePass {
  at::Tensor bias;             // [C], of the type of y; undefined: no bias
  at::Tensor residual;         // shape and type of y; undefined: no residual
  at::Tensor frequency, gain;  // float32 [C]
  bool keeps_plain = false;
};

struct SnakePassResult {
  at::Tensor plain;  // undefined without keeps_plain
  at::Tensor snaked;
};

/// Whether the pass supports `device` and `dtype` (float32 or bfloat16). The first call compiles the kernel and
/// compares it with snake(). If the results differ, it logs a warning and the pass is never used.
bool has_snake_pass(const at::Device& device, at::ScalarType dtype);

/// y must be contiguous and on a supported device.
SnakePassResult run_snake_pass(const at::Tensor& y, const SnakePass& pass);

}  // namespace carillon::kernels
