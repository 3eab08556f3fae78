#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/dit/condition_encoder.h"
#include "core/nn/layers.h"

namespace carillon {

/// Finite scalar quantisation (Mentzer et al., 2023) with the symmetric soft clamp of the reference tokenizer:
/// dimension d has levels[d] evenly spaced values in [-1, 1]. An index identifies a combination of values, with
/// dimension 0 varying fastest. Always computed in float32.
class Fsq {
 public:
  /// Throws kBadArgument unless every level is at least 2.
  explicit Fsq(std::vector<int64_t> levels);

  int64_t dimensions() const { return static_cast<int64_t>(levels_.size()); }
  int64_t codebook_size() const { return codebook_size_; }

  /// z [..., D] -> indices [...] int64.
  at::Tensor quantize(const at::Tensor& z) const;
  /// indices [...] int64 -> values [..., D] float32. Throws kBadArgument for an index outside the codebook.
  at::Tensor values(const at::Tensor& indices) const;

 private:
  at::Tensor top_levels(const at::Device& device) const;
  at::Tensor bounded(const at::Tensor& z) const;

  std::vector<int64_t> levels_;
  std::vector<int64_t> basis_;
  int64_t codebook_size_ = 1;
};

/// Converts latents at 25 Hz to audio codes at 5 Hz. Always computes in float32, because rounding can flip a code; the
/// tokenizer is small and runs at most once per song.
class AudioTokenizer {
 public:
  /// Reads the weights of `model` whose names begin with `tokenizer.`.
  static AudioTokenizer load(const Weights& model, const DitConfig& config);

  struct Tokens {
    at::Tensor quantized;  // [B, N, E], the model's dtype
    at::Tensor indices;    // [B, N] int64
  };
  /// Converts latents [B, T, C], preferably float32, to N = ceil(T / frames per code) codes. If the last code has too
  /// few frames, they are padded with the first frames of `silence` [1, F, C].
  Tokens tokenize(const at::Tensor& latents, const at::Tensor& silence) const;

  /// Indices [B, N] int64 -> [B, N, E] in the model's dtype. Throws kBadArgument for an index outside the codebook.
  at::Tensor embed(const at::Tensor& indices) const;

  int64_t codebook_size() const { return fsq_.codebook_size(); }

 private:
  AudioTokenizer(Fsq fsq, int64_t frames_per_code, at::ScalarType dtype)
      : fsq_(std::move(fsq)), frames_per_code_(frames_per_code), dtype_(dtype) {}

  Fsq fsq_;
  int64_t frames_per_code_;
  at::ScalarType dtype_;  // dtype of the model; the members below are float32
  nn::Linear acoustic_proj_;
  nn::Linear embed_;
  at::Tensor special_token_;  // [1, 1, E]
  EncoderStack pooler_;
  nn::Linear project_in_, project_out_;
};

/// Converts audio codes at 5 Hz back to latents at 25 Hz. The DiT uses the result like the latents of a source
/// recording.
class AudioDetokenizer {
 public:
  /// Reads the weights whose names begin with `detokenizer.`.
  static AudioDetokenizer load(const Weights& weights, const DitConfig& config);

  /// quantized [B, N, E] -> [B, N * frames per code, C].
  at::Tensor hints(const at::Tensor& quantized) const;

 private:
  nn::Linear embed_;
  at::Tensor special_tokens_;  // [1, frames per code, E]
  EncoderStack stack_;
  nn::Linear proj_out_;
};

}  // namespace carillon
