#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/nn/linear.h"

namespace carillon {

/// A flow time as a vector, and as the six modulations of a DiT layer.
struct TimeEmbedding {
  nn::Linear linear_1, linear_2, time_proj;

  struct Output {
    at::Tensor embedding;   // [N, H]
    at::Tensor modulation;  // [N, 6, H]
  };

  /// Reads `linear_1`, `linear_2`, `time_proj`.
  static TimeEmbedding load(const Weights& weights, int64_t hidden_size);

  /// times [N] float32 in [0, 1]. The sinusoid is computed in float32, then cast.
  Output operator()(const at::Tensor& times) const;
};

/// [cos(1000 t f_i), sin(1000 t f_i)] with f_i = 10000^(-2i / width): times [N] float32 -> [N, width] float32.
at::Tensor sinusoid(const at::Tensor& times, int64_t width);

}  // namespace carillon
