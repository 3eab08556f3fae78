#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "pretraining/autoencoder.h"
#include "pretraining/pieces.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {

/// Both halves of the autoencoder, on random crops of mixes and stems: spectral and waveform distance, the divergence
/// of the posterior from the normal, and a pull of the latents to unit scale, where flow matching has its noise.
class VaeStage : public TrainingStage {
 public:
  VaeStage(const VaeConfig& config, const Pieces& pieces, int64_t batch, double crop_seconds, at::Device device);

  /// The first weights, where there are none yet: a transform whose latents have unit scale on the data.
  void begin(Parameters& parameters) const;

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// Of held-out pieces, as ReconstructionError says.
  Figures measure(const Weights& weights) const override;

 private:
  at::Tensor crops(int64_t count, Draw& draw) const;  // [count, 2, samples] of mixes and stems

  VaeConfig config_;
  int64_t batch_, crop_samples_;
  at::Device device_;
  ReconstructionError error_;
  std::vector<Wav> train_;
  at::Tensor held_out_;  // [crops, 2, samples]
};

}  // namespace carillon::pretraining
