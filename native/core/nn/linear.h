#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "kernels/matrix.h"

namespace carillon::nn {

/// x [..., in] times weight [out, in] transposed, plus bias [out] where it is defined: [..., out].
/// The one place where a dense projection happens; hand-written kernels are chosen here.
at::Tensor linear(const at::Tensor& x, const kernels::Matrix& weight, const at::Tensor& bias);

/// What is added to some outputs of a Linear while an adapter of theirs is trained.
struct Branch {
  int64_t first_row = 0, rows = 0;
  std::function<at::Tensor(const at::Tensor&)> delta;  // x [..., in] -> [..., rows]
};

struct Linear {
  kernels::Matrix weight;             // [out, in]
  at::Tensor bias;                    // [out], undefined for none
  std::vector<Branch> branches = {};  // empty but in training

  /// Reads `weight` [out, in] and, where `has_bias`, `bias` [out].
  static Linear load(const Weights& weights, int64_t in, int64_t out, bool has_bias);

  /// Several projections of one input as one: the rows of `names[i]` (`rows[i]` of them) follow one another.
  /// An adapter of projection i assigns to `weight.rows(rows before i, rows[i])`.
  static Linear load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                           const std::vector<int64_t>& rows, bool has_bias);

  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace carillon::nn
