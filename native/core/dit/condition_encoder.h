#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/attention.h"

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

/// What a batch of songs is conditioned on. Masks are bool, true for real tokens.
struct ConditionInputs {
  at::Tensor text_hidden_states;  // [B, Lt, text width]
  at::Tensor text_mask;           // [B, Lt]
  at::Tensor lyric_embeddings;    // [B, Ll, text width]
  at::Tensor lyric_mask;          // [B, Ll]
  at::Tensor timbre_latents;      // [R, frames, channels], all reference clips of the batch
  at::Tensor timbre_items;        // [R] int64, the batch item of each clip, non-decreasing
};

/// Sequences with their real entries in front.
struct PackedStates {
  at::Tensor states;  // [B, L, E]
  at::Tensor mask;    // [B, L] bool
};

/// Concatenates two sequences per item and moves what the masks keep to the front; order is otherwise unchanged.
PackedStates pack(const PackedStates& first, const PackedStates& second);

/// Lyrics, reference clips and text to the sequence that the DiT attends to, in this order.
class ConditionEncoder {
 public:
  /// `weights` at `encoder.`.
  static ConditionEncoder load(const Weights& weights, const DitConfig& config);

  PackedStates encode(const ConditionInputs& inputs) const;

  /// [B, L, text width], mask [B, L] -> [B, L, E]. Masked positions are not attended to but have an output.
  at::Tensor encode_lyrics(const at::Tensor& embeddings, const at::Tensor& mask) const;
  /// One state a clip, gathered by item: [B, most clips of an item, E], zero where an item has fewer.
  /// The state is taken at the first frame, or at a special token before it in the XL family.
  PackedStates encode_timbre(const at::Tensor& latents, const at::Tensor& items, int64_t batch) const;

 private:
  nn::Linear text_projector_;
  nn::Linear lyric_embed_;
  EncoderStack lyric_stack_;
  nn::Linear timbre_embed_;
  at::Tensor timbre_special_token_;  // [1, 1, E]; undefined where the family does not prepend it
  EncoderStack timbre_stack_;
};

}  // namespace carillon
