#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/encoder_layer.h"
#include "core/nn/rms_norm.h"

namespace carillon {

/// The transformer inside the lyric encoder, the timbre encoder, the audio tokenizer and the detokenizer:
/// bidirectional pre-norm layers of the encoder's width, windowed as `layer_types` says, then a norm.
struct EncoderStack {
  std::vector<nn::EncoderLayer> layers;
  std::vector<int64_t> windows;  // per layer; 0: full attention
  bool one_sided_windows = false;
  nn::RmsNorm norm;
  int64_t head_dim = 0;
  double rope_theta = 0;

  /// Reads `layers.0` .. `layers.{count - 1}` and `norm`.
  static EncoderStack load(const Weights& weights, const DitConfig& config, int64_t count);

  /// x [B, S, E], positions from 0 -> [B, S, E]. `key_mask` [B, S] bool hides keys; undefined hides none.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& key_mask = {}) const;
};

}  // namespace carillon
