#include "core/nn/swiglu.h"

#include <ATen/ATen.h>

namespace carillon::nn {

SwiGlu SwiGlu::load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size) {
  return {
      Linear::load_fused(weights, {"gate_proj", "up_proj"}, hidden_size, {intermediate_size, intermediate_size}, false),
      Linear::load(weights.sub("down_proj"), intermediate_size, hidden_size, false)};
}

at::Tensor SwiGlu::operator()(const at::Tensor& x) const {
  const auto halves = gate_up(x).chunk(2, -1);
  return down(at::silu(halves[0]) * halves[1]);
}

}  // namespace carillon::nn
