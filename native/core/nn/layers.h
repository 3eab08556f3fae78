#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "kernels/matrix.h"

namespace carillon::nn {

/// An adapter in training, added to some outputs of a Linear.
struct Branch {
  int64_t first_row = 0, rows = 0;
  std::function<at::Tensor(const at::Tensor&)> delta;  // x [..., in] -> [..., rows]
};

/// A dense projection: x [..., in] -> [..., out].
struct Linear {
  std::vector<kernels::Matrix> parts;  // weight [out, in], as one matrix or split by rows
  at::Tensor bias;                    // [out], undefined for none
  std::vector<Branch> branches = {};  // only in training
  bool is_merged = false;             // whether adapters are merged into the weight

  /// Reads `weight` [out, in] and, with `has_bias`, `bias` [out].
  static Linear load(const Weights& weights, int64_t in, int64_t out, bool has_bias);

  /// Fuses projections of the same input; projection names[i] has rows[i] rows. If the projections are adjacent in the
  /// mapped file, the weight is one view of it. Otherwise large mapped projections stay separate views, and all others
  /// are copied to one matrix.
  static Linear load_fused(const Weights& weights, const std::vector<std::string>& names, int64_t in,
                           const std::vector<int64_t>& rows, bool has_bias);

  /// Reads only the `parts` of the Linear that `load_fused` returns for these projections, or `load` for one
  /// projection. Each call returns the same bytes in the same storage type.
  static std::vector<kernels::Matrix> read_parts(const Weights& weights, const std::vector<std::string>& names,
                                                 int64_t in, const std::vector<int64_t>& rows);

  int64_t outputs() const;
  int64_t inputs() const { return parts[0].columns(); }
  /// Returns a view of the weight's rows first .. first + count - 1. These rows must be in one part.
  kernels::Matrix rows(int64_t first, int64_t count) const;

  at::Tensor operator()(const at::Tensor& x) const;
};

/// down(silu(gate(x)) * up(x)). Weights: {gate,up,down}_proj, no bias.
struct SwiGlu {
  Linear gate_up;  // rows: gate [I], up [I]
  Linear down;

  static SwiGlu load(const Weights& weights, int64_t hidden_size, int64_t intermediate_size);

  /// x [..., H] -> [..., H].
  at::Tensor operator()(const at::Tensor& x) const;
};

/// Scales x [..., C] to unit root mean square over the last dimension, then multiplies it by weight (last dimension C).
/// As in transformers, scaling is in float32, and the cast to x's dtype comes before the multiplication. The order
/// changes results in bfloat16.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

struct RmsNorm {
  at::Tensor weight;  // [C]
  double eps = 0;

  /// Reads `weight` [size].
  static RmsNorm load(const Weights& weights, int64_t size, double eps);

  at::Tensor operator()(const at::Tensor& x) const { return rms_norm(x, weight, eps); }
};

/// Tables of rotary position embedding (rotate-half form). At position p, the angles are p * theta^(-2 * j / D) for
/// j < D / 2. The tables are computed in float32, then cast.
struct Rotary {
  at::Tensor cos;  // [positions, D/2]
  at::Tensor sin;  // [positions, D/2]

  static Rotary make(int64_t positions, int64_t head_dim, double theta, const Placement& placement);

  /// The tables of concatenated sequences. The positions of each sequence start at 0.
  Rotary for_sequences(const std::vector<int64_t>& lengths) const;
  /// Returns views of the tables of the positions first .. first + count - 1.
  Rotary slice(int64_t first, int64_t count) const;
  /// Returns the tables [n, t, D/2] of the given positions, int64 [n, t], on the device of the tables.
  Rotary at(const at::Tensor& positions) const;
};

/// Rotates x [B, S, heads, D] by the tables of its positions. The tables are [S, D/2], or [B, S, D/2] if each row of
/// the batch has its own positions.
at::Tensor apply_rotary(const at::Tensor& x, const Rotary& rotary);

}  // namespace carillon::nn
