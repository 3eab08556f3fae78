#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// What follows a convolution's sums y [B, C, T] in one pass over them: plain = y + bias + residual, snaked = its snake.
struct SnakePass {
  at::Tensor bias;             // [C], of the type of y; undefined for none
  at::Tensor residual;         // as y; undefined for none
  at::Tensor frequency, gain;  // float32 [C]
  bool keeps_plain = false;
};

struct SnakePassResult {
  at::Tensor plain;  // undefined unless asked for
  at::Tensor snaked;
};

/// Whether the pass runs on the GPU `device` for tensors of `dtype`: float32 or bfloat16. The first time it is compiled, and
/// compared with snake() there; where they disagree it is never used, which a warning tells.
bool has_snake_pass(const at::Device& device, at::ScalarType dtype);

/// Contiguous y on a device that has it; 2 bytes an element are read and 2 written in bfloat16, twice the latter where both
/// results are wanted.
SnakePassResult run_snake_pass(const at::Tensor& y, const SnakePass& pass);

}  // namespace carillon::kernels
