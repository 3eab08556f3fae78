#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/attention.h"

namespace carillon {

/// The transformer inside the lyric encoder, the timbre encoder, the audio tokenizer and the detokenizer: bidirectional
/// pre-norm layers of the encoder's width, with attention windows by `layer_types`, followed by a norm.
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

/// Conditions of a batch of songs. Masks are bool, true for real tokens.
struct ConditionInputs {
  at::Tensor text_hidden_states;  // [B, Lt, text width]
  at::Tensor text_mask;           // [B, Lt]
  at::Tensor lyric_embeddings;    // [B, Ll, text width]
  at::Tensor lyric_mask;          // [B, Ll]
  at::Tensor timbre_latents;      // [R, frames, channels], all reference clips of the batch
  at::Tensor timbre_items;        // [R] int64, the batch item of each clip, non-decreasing
};

/// Sequences with padding at the end.
struct PackedStates {
  at::Tensor states;  // [B, L, E]
  at::Tensor mask;    // [B, L] bool
};

/// Concatenates two sequences per item and moves padding to the end, in stable order.
PackedStates pack(const PackedStates& first, const PackedStates& second);

/// Encodes lyrics, reference clips and text, in this order, to the sequence that the DiT attends to.
class ConditionEncoder {
 public:
  /// Loads from weights below `encoder.`.
  static ConditionEncoder load(const Weights& weights, const DitConfig& config);

  PackedStates encode(const ConditionInputs& inputs) const;

  /// [B, L, text width], mask [B, L] -> [B, L, E]. Masked positions are not attended to but have an output.
  at::Tensor encode_lyrics(const at::Tensor& embeddings, const at::Tensor& mask) const;
  /// One state per clip, grouped by item and padded with zeros: [B, most clips of an item, E]. A clip's state is the
  /// output at its first frame, or in the XL family at a special token before it.
  PackedStates encode_timbre(const at::Tensor& latents, const at::Tensor& items, int64_t batch) const;

 private:
  nn::Linear text_projector_;
  nn::Linear lyric_embed_;
  EncoderStack lyric_stack_;
  nn::Linear timbre_embed_;
  at::Tensor timbre_special_token_;  // [1, 1, E]; undefined without timbre_prepends_special_token
  EncoderStack timbre_stack_;
};

}  // namespace carillon
