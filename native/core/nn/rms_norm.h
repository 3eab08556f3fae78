#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"

namespace carillon::nn {

/// x [..., C] scaled to unit root mean square over the last dimension, times weight (broadcast, last dimension C).
/// Statistics and scaling are float32, the result is cast to x's dtype and only then multiplied by the weight,
/// as transformers does: the order matters for parity in bfloat16.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

struct RmsNorm {
  at::Tensor weight;  // [C]
  double eps = 0;

  /// Reads `weight` [size].
  static RmsNorm load(const Weights& weights, int64_t size, double eps);

  at::Tensor operator()(const at::Tensor& x) const { return rms_norm(x, weight, eps); }
};

}  // namespace carillon::nn
