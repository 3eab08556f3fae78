#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/attention.h"
#include "core/runtime/control.h"

namespace carillon {

/// The weights of a Qwen3 transformer and the two ways through them.
struct Qwen3Stack {
  Qwen3Config config;
  kernels::Matrix embeddings;  // [V, H]
  std::vector<nn::EncoderLayer> layers;
  nn::RmsNorm norm;

  static Qwen3Stack load(const Weights& weights, const Qwen3Config& config, const Control& control);

  /// ids [B, T] int64 -> [B, T, H]. Throws kBadArgument for an id outside the vocabulary.
  at::Tensor embed(const at::Tensor& ids) const;
  /// Whole sequences from position 0, causal: ids [B, T] -> hidden states after the final norm, [B, T, H]. Right padding
  /// cannot reach earlier tokens. Works under autograd.
  at::Tensor encode(const at::Tensor& ids) const;
};

}  // namespace carillon
