#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/nn/attention.h"
#include "core/runtime/control.h"

namespace carillon {

/// Transformer of the lyric encoder, the timbre encoder, the audio tokenizer and the detokenizer. It has bidirectional
/// pre-norm layers and a final norm. `layer_types` of the config sets the attention window of each layer.
struct EncoderStack {
  std::vector<nn::EncoderLayer> layers;
  std::vector<int64_t> windows;  // per layer; 0: full attention
  bool one_sided_windows = false;
  nn::RmsNorm norm;
  int64_t head_dim = 0;
  double rope_theta = 0;

  /// Reads `layers.0` .. `layers.{count - 1}` and `norm`.
  static EncoderStack load(const Weights& weights, const DitConfig& config, int64_t count);

  /// x [B, S, E] -> [B, S, E], with positions from 0. `pattern` may set key_mask or lengths, but not both. The window
  /// of `pattern` is ignored: each layer has its own. Checks for cancellation per layer.
  at::Tensor operator()(const at::Tensor& x, nn::AttentionPattern pattern = {},
                        const Control& control = Control()) const;
};

/// Encodes the three kinds of states that the DiT attends to, in this order: lyrics, reference clips, text.
class ConditionEncoder {
 public:
  /// Reads the weights whose names begin with `encoder.`.
  static ConditionEncoder load(const Weights& weights, const DitConfig& config);

  /// Embeddings [B, L, text width] -> [B, L, E]. `pattern` may set key_mask or lengths, but not both. Masked positions
  /// also get an output. Checks for cancellation per layer.
  at::Tensor encode_lyrics(const at::Tensor& embeddings, const nn::AttentionPattern& pattern = {},
                           const Control& control = Control()) const;
  /// One state per clip: [R, frames, channels] -> [R, E]. The state is the output at the clip's first frame. In the XL
  /// family, it is the output at a special token before that frame.
  at::Tensor encode_timbre(const at::Tensor& latents) const;
  /// States of the text encoder [B, L, text width] -> [B, L, E].
  at::Tensor project_text(const at::Tensor& states) const { return text_projector_(states); }

 private:
  nn::Linear text_projector_;
  nn::Linear lyric_embed_;
  EncoderStack lyric_stack_;
  nn::Linear timbre_embed_;
  at::Tensor timbre_special_token_;  // [1, 1, E]; undefined without timbre_prepends_special_token
  EncoderStack timbre_stack_;
};

}  // namespace carillon
