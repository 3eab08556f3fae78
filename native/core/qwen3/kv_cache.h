#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/config.h"
#include "core/runtime/placement.h"

namespace carillon {

/// Keys and values of every layer for a fixed number of rows (sequences), each with its own length.
/// Allocated once: [layers, 2, rows, kv_heads, max_tokens, head_dim]. A row is written in place and never moved.
class KvCache {
 public:
  KvCache(const Qwen3Config& config, const Placement& placement, int64_t rows, int64_t max_tokens);

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t max_tokens() const { return data_.size(4); }
  int64_t length(int64_t row) const;

  /// Row `to` becomes a copy of row `from`: a common prompt is fed once and shared.
  void copy_row(int64_t from, int64_t to);
  /// Forgets the tokens of `row` from `length` on; `length` is at most its length.
  void truncate(int64_t row, int64_t length);

  /// Keys and values of one layer: [rows, kv_heads, max_tokens, head_dim].
  at::Tensor keys(int64_t layer) const { return data_.select(0, layer).select(0, 0); }
  at::Tensor values(int64_t layer) const { return data_.select(0, layer).select(0, 1); }
  /// Called by the model once all layers wrote `tokens` more positions of `row`.
  void extend(int64_t row, int64_t tokens);

 private:
  at::Tensor data_;
  std::vector<int64_t> lengths_;
};

}  // namespace carillon
