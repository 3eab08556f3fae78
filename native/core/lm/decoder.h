#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>

#include "core/qwen3/causal_lm.h"

namespace carillon {

/// A causal model and the KV cache of one generation, as the loop sees them: rows of tokens that
/// grow, and logits for what comes next.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Appends ids [n, t] (int64, host) to the n rows named. Returns their last hidden states, [n, H].
  virtual at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) = 0;
  /// Logits of the ids first .. first + count - 1 from hidden states [n, H]: float32 [n, count].
  virtual at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) = 0;
  /// Row `to` becomes a copy of row `from`.
  virtual void copy_row(int64_t from, int64_t to) = 0;

  struct OnDevice {
    const CausalLm& model;
    KvCache& cache;
  };
  /// What is behind it where the device may choose tokens before the host has read those before (run_ahead.h); else
  /// nothing.
  virtual std::optional<OnDevice> on_device() { return std::nullopt; }
};

/// The real model with a cache of `rows` rows of at most `max_tokens`. `model` outlives it. Throws kBadArgument
/// (CausalLm::make_cache).
std::unique_ptr<Decoder> make_decoder(const CausalLm& model, int64_t rows, int64_t max_tokens);

}  // namespace carillon
