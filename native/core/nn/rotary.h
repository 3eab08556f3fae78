#pragma once
#include <ATen/core/Tensor.h>

#include "core/runtime/placement.h"

namespace carillon::nn {

/// Rotary position tables, rotate-half form: angle p * theta^(-2j/D), j < D/2. Computed in float32, then cast.
struct Rotary {
  at::Tensor cos;  // [positions, D/2]
  at::Tensor sin;  // [positions, D/2]

  static Rotary make(int64_t positions, int64_t head_dim, double theta, const Placement& placement);

  /// The tables of positions first .. first + count - 1 (views).
  Rotary slice(int64_t first, int64_t count) const;
  /// The tables of the given positions: int64 [n, t] -> [n, t, D/2], on the tables' device.
  Rotary at(const at::Tensor& positions) const;
};

/// Rotates x [B, S, heads, D] by its positions: tables [S, D/2], or [B, S, D/2] with positions per row.
at::Tensor apply_rotary(const at::Tensor& x, const Rotary& rotary);

}  // namespace carillon::nn
