#pragma once
// Distances between tensors, computed in double precision.
#include <ATen/ATen.h>

namespace carillon::test {

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// Euclidean distance from `expected`, as a fraction of the norm of `expected`.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor wide = expected.to(at::kDouble);
  return ((actual.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

}  // namespace carillon::test
