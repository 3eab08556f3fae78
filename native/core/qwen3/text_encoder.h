#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/qwen3/stack.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"

namespace carillon {

/// Qwen3-Embedding: prompts to hidden states, lyric tokens to embeddings.
class TextEncoder {
 public:
  /// Throws kBadCheckpoint; reports Stage::kLoad per layer.
  static TextEncoder load(const std::string& directory, const Placement& placement, const Control& control);

  const Qwen3Config& config() const { return stack_.config; }
  const Placement& placement() const { return placement_; }
  const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }  // Checkpoint::unused

  /// ids [B, T] (int64, any device) -> last hidden states after the final norm, [B, T, H]. Causal, no padding mask:
  /// right padding cannot reach earlier tokens. Throws kBadArgument for an id outside the vocabulary.
  at::Tensor encode(const at::Tensor& ids) const;
  /// The embedding rows of ids [B, T]: [B, T, H]. What the lyric encoder reads.
  at::Tensor embed(const at::Tensor& ids) const;

 private:
  Qwen3Stack stack_;
  Placement placement_;
  std::vector<std::string> unused_tensors_;
};

}  // namespace carillon
