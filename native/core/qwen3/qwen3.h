#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/attention.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"

namespace carillon {

/// The weights of a Qwen3 transformer.
struct Qwen3Stack {
  Qwen3Config config;
  kernels::Matrix embeddings;  // [V, H]
  std::vector<nn::EncoderLayer> layers;
  nn::RmsNorm norm;

  static Qwen3Stack load(const Weights& weights, const Qwen3Config& config, const Control& control);

  /// ids [B, T] int64 -> [B, T, H]. Throws kBadArgument for an id outside the vocabulary.
  at::Tensor embed(const at::Tensor& ids) const;
};

/// Qwen3-Embedding. Converts prompts to hidden states, and lyric tokens to embeddings.
class TextEncoder {
 public:
  /// Reports progress (Stage::kLoad) after each layer. Throws kBadCheckpoint.
  static TextEncoder load(const ModelSource& source, const Placement& placement, const Control& control);

  const Qwen3Config& config() const { return stack_.config; }
  const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }  // Checkpoint::unused

  /// Returns the hidden states [B, T, H] after the final norm for ids [B, T]. Right padding needs no mask, because
  /// attention is causal. With several `lengths`, ids [1, T] are concatenated texts of these lengths, which do not
  /// attend to each other.
  /// Throws kBadArgument for an id outside the vocabulary, and for a text without tokens or with too many.
  at::Tensor encode(const at::Tensor& ids, const std::vector<int64_t>& lengths = {},
                    const Control& control = Control()) const;
  /// Returns the embeddings [B, T, H] of ids [B, T] for the lyric encoder.
  at::Tensor embed(const at::Tensor& ids) const;

 private:
  Qwen3Stack stack_;
  std::vector<std::string> unused_tensors_;
};

}  // namespace carillon
