#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <string>
#include <vector>

#include "core/qwen3/qwen3.h"

namespace carillon {

/// Keys and values of every layer for a fixed number of rows (sequences), each with its own length. One tensor [layers,
/// 2, rows, kv_heads, max_tokens, head_dim] holds all of them; rows are written in place. On a GPU, all heads of a
/// token are adjacent in memory, as the attention kernel expects.
class KvCache {
 public:
  KvCache(const Qwen3Config& config, const Placement& placement, int64_t rows, int64_t max_tokens);

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t max_tokens() const { return data_.size(4); }
  int64_t length(int64_t row) const;

  /// Copies row `from` to row `to`, so that a prompt that several rows share is computed once.
  void copy_row(int64_t from, int64_t to);
  /// Truncates `row` to `length` tokens. `length` must not exceed the current length.
  void truncate(int64_t row, int64_t length);

  /// Keys and values of one layer: [rows, kv_heads, max_tokens, head_dim].
  at::Tensor keys(int64_t layer) const { return data_.select(0, layer).select(0, 0); }
  at::Tensor values(int64_t layer) const { return data_.select(0, layer).select(0, 1); }
  /// Increases the length of `row` by `tokens`. Call it after all layers have written the new keys and values.
  void extend(int64_t row, int64_t tokens);

 private:
  at::Tensor data_;
  std::vector<int64_t> lengths_;
};

/// The 5 Hz language model: token ids in, hidden states and logits out, through a KV cache.
class CausalLm {
 public:
  /// Reports progress after each layer as Stage::kLoad. Throws kBadCheckpoint.
  static CausalLm load(const ModelSource& source, const Placement& placement, const Control& control);

  const Qwen3Config& config() const { return stack_.config; }
  const Placement& placement() const { return placement_; }
  const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }  // Checkpoint::unused

  /// Throws kBadArgument unless `rows` is at least 1 and `max_tokens` is in 1 .. max_position_embeddings.
  KvCache make_cache(int64_t rows, int64_t max_tokens) const;

  /// Bytes of the keys and values of one token of one row.
  int64_t cache_bytes_per_token() const;

  /// Appends t tokens to each of the n cache rows that `rows` names. `ids` is [n, t] (int64, CPU). Returns the hidden
  /// states of the last position after the final norm, [n, H]. Throws kBadArgument if an id is outside the vocabulary,
  /// if a row is repeated or out of range, or if the cache is too small.
  at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const;
  /// Like feed, but returns the hidden states of all positions: [n, t, H].
  at::Tensor feed_all(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const;

  /// Feeds one token to every row of the cache, with constant shapes. `ids` [rows] (int64, in the vocabulary) and
  /// `positions` [rows] (int64, below max_tokens) are on the device. Returns the hidden states after the final norm,
  /// [rows, H]. The caller must then call KvCache::extend for each row.
  at::Tensor step(const at::Tensor& ids, const at::Tensor& positions, KvCache& cache) const;

  /// hidden [..., H] -> float32 logits of the whole vocabulary, [..., V].
  at::Tensor logits(const at::Tensor& hidden) const;
  /// Logits [..., count] of the ids first .. first + count - 1 only.
  at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) const;

 private:
  at::Tensor forward(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const;

  Qwen3Stack stack_;
  kernels::Matrix head_;  // [V, H]: lm_head.weight, or the embeddings if the checkpoint has none
  Placement placement_;
  std::vector<std::string> unused_tensors_;
  nn::Rotary rotary_;  // cosines and sines of max_position_embeddings positions
};

}  // namespace carillon
