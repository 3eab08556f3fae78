#include "core/qwen3/kv_cache.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"

namespace carillon {

KvCache::KvCache(const Qwen3Config& config, const Placement& placement, int64_t rows, int64_t max_tokens)
    : data_(at::empty({config.num_hidden_layers, 2, rows, config.num_key_value_heads, max_tokens, config.head_dim},
                      at::TensorOptions().device(placement.device).dtype(placement.dtype))),
      lengths_(static_cast<size_t>(rows), 0) {}

int64_t KvCache::length(int64_t row) const {
  if (row < 0 || row >= rows()) {
    fail(ErrorCode::kBadArgument,
         "the cache has " + std::to_string(rows()) + " rows, there is no row " + std::to_string(row));
  }
  return lengths_[static_cast<size_t>(row)];
}

void KvCache::copy_row(int64_t from, int64_t to) {
  if (from == to) return;
  const int64_t used = length(from);
  truncate(to, 0);
  data_.select(2, to).narrow(3, 0, used).copy_(data_.select(2, from).narrow(3, 0, used));
  lengths_[static_cast<size_t>(to)] = used;
}

void KvCache::truncate(int64_t row, int64_t length) {
  if (length < 0 || length > this->length(row)) {
    fail(ErrorCode::kBadArgument, "row " + std::to_string(row) + " has " + std::to_string(this->length(row)) +
                                      " tokens and cannot be cut to " + std::to_string(length));
  }
  lengths_[static_cast<size_t>(row)] = length;
}

void KvCache::extend(int64_t row, int64_t tokens) { lengths_[static_cast<size_t>(row)] += tokens; }

}  // namespace carillon
