#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/model_source.h"

namespace carillon {

// Typed contents of config.json files. Fields are named like the keys. If a value is missing, impossible or of the
// wrong type, `read` throws kBadCheckpoint with the file and the key.

/// Identifies an attention head by its layer and its index in the layer.
struct AttentionHead {
  int64_t layer, head;

  friend bool operator==(const AttentionHead&, const AttentionHead&) = default;
};

/// Range of integrated loudness in LUFS.
struct LoudnessRange {
  double low, high;
};

/// A stack of transformer layers.
struct TransformerConfig {
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t num_hidden_layers;
  int64_t num_attention_heads;
  int64_t num_key_value_heads;
  int64_t head_dim;
  double rms_norm_eps;
  double rope_theta;  // also read from rope_parameters or rope_scaling
  bool attention_bias;
};

/// The DiT with its condition encoder, audio tokenizer and detokenizer. All of them have the DiT's head_dim,
/// rms_norm_eps, rope_theta, attention_bias and windows.
struct DitConfig : TransformerConfig {
  int64_t in_channels;                // source latents, chunk mask and state: 3 * audio_acoustic_hidden_dim
  int64_t audio_acoustic_hidden_dim;  // latent channels
  int64_t patch_size;
  bool is_turbo;
  bool is_lego_sft;       // its captions have three parts: song, stem, mask
  LoudnessRange music;    // loudness of the music that the model makes (`music_lufs`)
  double timestep_mu;     // mean of the logit-normal distribution of timesteps
  double timestep_sigma;  // standard deviation of the same distribution
  /// Cross-attention heads whose attention follows the sung lyrics, sorted by layer (`lyric_alignment_layers_config`).
  /// Empty if none are known.
  std::vector<AttentionHead> lyric_heads;

  // fields of the condition encoder, the audio tokenizer and the detokenizer
  int64_t encoder_hidden_size;
  int64_t encoder_intermediate_size;
  int64_t encoder_num_attention_heads;
  int64_t encoder_num_key_value_heads;
  int64_t text_hidden_dim;
  int64_t timbre_hidden_dim;
  int64_t timbre_fix_frame;
  /// True for the XL family, whose config has encoder_hidden_size. The timbre encoder of this family prepends
  /// special_token and returns the output at that token. Other families return the output at the first frame.
  bool timbre_prepends_special_token;
  int64_t num_lyric_encoder_hidden_layers;
  int64_t num_timbre_encoder_hidden_layers;
  int64_t num_attention_pooler_hidden_layers;  // layers of tokenizer and detokenizer
  int64_t pool_window_size;                    // latent frames of one audio code
  int64_t fsq_dim;
  std::vector<int64_t> fsq_input_levels;

  int64_t sliding_window;  // in tokens; 0: all layers have full attention
  std::vector<bool> layer_has_window;

  /// False: a window limits attention on both sides, as in published models. True: a window limits only how far back
  /// attention looks, and all later tokens are visible. Only parity tests of base models set true: their expected
  /// values come from a fork of the reference with one-sided windows.
  bool one_sided_windows = false;

  /// Attention window of layer `index` of a stack (DiT or encoder): position i attends to j if |i - j| <= window. 0
  /// means full attention. Beyond the end of layer_has_window, layers with an even index have a window.
  int64_t window_of_layer(int64_t index) const;

  /// Reads config.json of the directory. In the diffusers layout, combines the configs of the sub-folders instead.
  static DitConfig read(const ModelSource& source);
};

/// The Oobleck VAE.
struct VaeConfig {
  int64_t sampling_rate;
  int64_t audio_channels;
  int64_t encoder_hidden_size;  // 0 with a spectral encoder
  int64_t decoder_channels;
  int64_t decoder_input_channels;  // latent channels
  std::vector<int64_t> downsampling_ratios;
  std::vector<int64_t> channel_multiples;

  /// For carillon-nano. The first latent channels are log amplitudes of semitones, from E1 upwards. Oscillators play
  /// these semitones, and their sound is added to the decoder's output. Empty if the file has no `oscillators`, like
  /// the files of published autoencoders.
  struct Oscillators {
    std::vector<double> mean, deviation;  // of the log amplitude, per channel
    double floor = 0;       // amplitude that the encoder adds to every semitone
    double subtracted = 0;  // subtracted in playback, so that silence and errors near the floor are inaudible
    double loudest = 0;     // upper limit of channel values in playback; without it one wrong latent could be too loud
  };
  Oscillators oscillators;

  /// For carillon-nano: an encoder that uses formulas instead of a network (vae/spectral_encoder.h). Its latent
  /// channels follow the channels of the oscillators. nullopt if the file has no `spectral_encoder`.
  struct SpectralEncoder {
    int64_t clock_channels, timbre_channels, pitch_classes;
  };
  std::optional<SpectralEncoder> spectral_encoder;

  /// Samples of one latent frame: the product of the downsampling ratios.
  int64_t samples_per_frame() const;

  static VaeConfig read(const ModelSource& source);
};

/// A Qwen3 transformer: the text encoder or the 5 Hz language model.
struct Qwen3Config : TransformerConfig {
  int64_t vocab_size;
  int64_t max_position_embeddings;

  static Qwen3Config read(const ModelSource& source);
};

}  // namespace carillon
