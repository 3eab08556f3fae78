#include "core/nn/layers.h"

#include <ATen/ATen.h>

#include "kernels/linear.h"

namespace carillon::nn {

Linear Linear::load(const Weights& weights, int64_t in, int64_t out, bool has_bias) {
  return {weights.matrix("weight", out, in), has_bias ? weights.get("bias", {out}) : at::Tensor()};
}

Linear Linear::load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                          const std::vector<int64_t>& rows, bool has_bias) {
  std::vector<at::Tensor> biases;
  for (size_t i = 0; has_bias && i < names.size(); ++i) biases.push_back(weights.get(names[i] + ".bias", {rows[i]}));
  return {read_weight(weights, names, in, rows), has_bias ? at::cat(biases) : at::Tensor()};
}

kernels::Matrix Linear::read_weight(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                                    const std::vector<int64_t>& rows) {
  std::vector<kernels::Matrix> parts;
  for (size_t i = 0; i < names.size(); ++i) parts.push_back(weights.matrix(names[i] + ".weight", rows[i], in));
  if (parts.size() == 1) return parts[0];
  const kernels::Matrix view = weights.copies_fused() ? kernels::Matrix() : kernels::joined(parts);
  return view.data.defined() ? view : kernels::concatenate(parts);
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

namespace {

/// Runs a decoding step on the CPU row by row, so that a row does not depend on the number of rows: libtorch splits the
/// elements between threads, and computes the last ones of each thread with scalar code that rounds exponentials
/// differently.
at::Tensor silu_by_row(const at::Tensor& x) {
  const bool is_decoding = x.is_cpu() && x.dim() == 3 && x.size(0) > 1 && x.size(1) == 1;
  if (!is_decoding) return at::silu(x);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& row : x.split(1)) rows.push_back(at::silu(row));
  return at::cat(rows);
}

}  // namespace

at::Tensor SwiGlu::operator()(const at::Tensor& x) const {
  const auto halves = gate_up(x).chunk(2, -1);
  return down(silu_by_row(halves[0]) * halves[1]);
}

}  // namespace carillon::nn
