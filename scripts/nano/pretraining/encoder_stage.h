#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "core/vae/networks.h"
#include "pretraining/latent_space.h"
#include "pretraining/pieces.h"
#include "pretraining/stage.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {

/// Teaches the encoder to say what the latent space (latent_space.h) says. Its first blocks are a lapped transform and
/// stay one; a step begins with what they give, computed at once.
class EncoderStage : public TrainingStage {
 public:
  EncoderStage(const VaeConfig& config, const Pieces& pieces, LatentSpace space, int64_t batch, double crop_seconds,
               at::Device device);

  /// First weights of an encoder that has none (encoder_start.h), from crops of the training pieces.
  void begin(Parameters& parameters) const;

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// On held-out pieces: errors of waves, timbre and pitches as shares of their variance.
  Figures measure(const Weights& weights) const override;

 private:
  /// What the exact blocks give, with the encoder's channels: [B, channels, T].
  at::Tensor bands(const at::Tensor& audio) const;
  /// Of audio [B, 2, samples], without frames at the edges that the space hears beyond the crop: [B, C, frames].
  at::Tensor encoded(const Weights& weights, const at::Tensor& audio) const;
  at::Tensor wanted(const at::Tensor& audio) const;
  at::Tensor crops(int64_t count, Draw& draw) const;

  VaeConfig config_;
  LatentSpace space_;
  int64_t batch_, crop_samples_;
  at::Device device_;
  at::Tensor filters_;  // of the exact blocks
  std::vector<Wav> train_;
  at::Tensor held_out_;  // [crops, 2, samples]
};

}  // namespace carillon::pretraining
