#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"
#include "core/nn/linear.h"

namespace carillon::nn {

/// down(silu(gate(x)) * up(x)). Weights: {gate,up,down}_proj, no bias.
struct SwiGlu {
  Linear gate_up;  // rows: gate [I], up [I]
  Linear down;

  static SwiGlu load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size);

  /// x [..., H] -> [..., H].
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace carillon::nn
