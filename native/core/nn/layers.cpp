#include "core/nn/layers.h"

#include <ATen/ATen.h>

#include "kernels/linear.h"

namespace carillon::nn {

Linear Linear::load(const Weights& weights, int64_t in, int64_t out, bool has_bias) {
  return {weights.matrix("weight", out, in), has_bias ? weights.get("bias", {out}) : at::Tensor()};
}

Linear Linear::load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                          const std::vector<int64_t>& rows, bool has_bias) {
  std::vector<kernels::Matrix> parts;
  std::vector<at::Tensor> biases;
  for (size_t i = 0; i < names.size(); ++i) {
    parts.push_back(weights.matrix(names[i] + ".weight", rows[i], in));
    if (has_bias) biases.push_back(weights.get(names[i] + ".bias", {rows[i]}));
  }
  return {kernels::concatenate(parts), has_bias ? at::cat(biases) : at::Tensor()};
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor y = kernels::linear(x, weight, bias);
  for (const auto& branch : branches) y.narrow(-1, branch.first_row, branch.rows).add_(branch.delta(x));
  return y;
}

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
