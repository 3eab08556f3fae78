#include "core/nn/linear.h"

#include <ATen/ATen.h>

#include "kernels/linear.h"

namespace carillon::nn {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return kernels::linear(x, weight, bias);
}

Linear Linear::load(const Weights& weights, int64_t in, int64_t out, bool has_bias) {
  return {weights.get("weight", {out, in}), has_bias ? weights.get("bias", {out}) : at::Tensor()};
}

Linear Linear::load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                          const std::vector<int64_t>& rows, bool has_bias) {
  std::vector<std::string> weight_names, bias_names;
  for (const auto& name : names) {
    weight_names.push_back(name + ".weight");
    bias_names.push_back(name + ".bias");
  }
  return {weights.get_rows(weight_names, rows, {in}), has_bias ? weights.get_rows(bias_names, rows, {}) : at::Tensor()};
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor y = linear(x, weight, bias);
  for (const auto& branch : branches) y.narrow(-1, branch.first_row, branch.rows).add_(branch.delta(x));
  return y;
}

}  // namespace carillon::nn
