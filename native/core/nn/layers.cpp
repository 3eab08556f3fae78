#include "core/nn/layers.h"

#include <ATen/ATen.h>

#include "kernels/linear.h"

namespace carillon::nn {

namespace {

/// If fused projections have fewer bytes than this, they are copied to one matrix, because one product is faster than
/// several small ones.
constexpr size_t kLargeBytes = 4 << 20;

}  // namespace

Linear Linear::load(const Weights& weights, int64_t in, int64_t out, bool has_bias) {
  return {{weights.matrix("weight", out, in)}, has_bias ? weights.get("bias", {out}) : at::Tensor()};
}

Linear Linear::load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                          const std::vector<int64_t>& rows, bool has_bias) {
  std::vector<at::Tensor> biases;
  for (size_t i = 0; has_bias && i < names.size(); ++i) biases.push_back(weights.get(names[i] + ".bias", {rows[i]}));
  return {read_parts(weights, names, in, rows), has_bias ? at::cat(biases) : at::Tensor()};
}

std::vector<kernels::Matrix> Linear::read_parts(const Weights& weights, const std::vector<std::string>& names,
                                                int64_t in, const std::vector<int64_t>& rows) {
  std::vector<kernels::Matrix> parts;
  bool are_mapped = !weights.copies_fused();
  size_t bytes = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i] + ".weight";
    const kernels::Matrix& part = parts.emplace_back(weights.matrix(name, rows[i], in));
    are_mapped = are_mapped && weights.is_mapped(part, name);
    bytes += part.data.nbytes();
  }
  if (parts.size() == 1) return parts;
  const kernels::Matrix view = are_mapped ? kernels::view_adjacent(parts) : kernels::Matrix();
  if (view.data.defined()) return {view};
  if (are_mapped && bytes >= kLargeBytes) return parts;
  return {kernels::concatenate(parts)};
}

int64_t Linear::outputs() const {
  int64_t outputs = 0;
  for (const kernels::Matrix& part : parts) outputs += part.outputs();
  return outputs;
}

kernels::Matrix Linear::rows(int64_t first, int64_t count) const {
  auto part = parts.begin();
  for (; first >= part->outputs(); ++part) first -= part->outputs();
  return part->rows(first, count);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  std::vector<at::Tensor> outputs;
  int64_t first = 0;
  for (const kernels::Matrix& part : parts) {
    const at::Tensor own_bias = bias.defined() ? bias.narrow(0, first, part.outputs()) : bias;
    outputs.push_back(kernels::linear(x, part, own_bias));
    first += part.outputs();
  }
  at::Tensor y = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
  for (const auto& branch : branches) y.narrow(-1, branch.first_row, branch.rows).add_(branch.delta(x));
  return y;
}

SwiGlu SwiGlu::load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size) {
  return {
      Linear::load_fused(weights, {"gate_proj", "up_proj"}, hidden_size, {intermediate_size, intermediate_size}, false),
      Linear::load(weights.sub("down_proj"), intermediate_size, hidden_size, false)};
}

namespace {

/// Computes silu. In a decoding step on the CPU, each row has its own call, so that the result for a row does not
/// depend on the number of rows. In one call for all rows, libtorch would round some elements differently.
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
