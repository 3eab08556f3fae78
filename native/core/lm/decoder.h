#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>

#include "core/qwen3/causal_lm.h"

namespace carillon {

/// A causal model with the KV cache of one batch. `feed` appends token ids to rows and returns hidden states. `logits`
/// computes the logits of the next token from hidden states.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Appends ids [n, t] (int64, host) to the given n rows. Returns their last hidden states, [n, H].
  virtual at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) = 0;
  /// Logits of the ids first .. first + count - 1 from hidden states [n, H]: float32 [n, count].
  virtual at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) = 0;
  /// Copies row `from` to row `to`.
  virtual void copy_row(int64_t from, int64_t to) = 0;
  /// Removes all ids of a row.
  virtual void clear_row(int64_t row) = 0;

  struct OnDevice {
    const CausalLm& model;
    KvCache& cache;
  };
  /// The model and its cache if the device can choose tokens ahead of the host (run_ahead.h), otherwise nullopt.
  virtual std::optional<OnDevice> on_device() { return std::nullopt; }
};

/// Makes a decoder with a cache for `rows` rows of at most `max_tokens` tokens. `model` must outlive the decoder.
/// Throws kBadArgument, as CausalLm::make_cache does.
std::unique_ptr<Decoder> make_decoder(const CausalLm& model, int64_t rows, int64_t max_tokens);

}  // namespace carillon
