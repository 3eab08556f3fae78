#pragma once
#include <vector>

#include "core/checkpoint/config.h"
#include "core/vae/networks.h"
#include "pretraining/pieces.h"
#include "pretraining/stage.h"
#include "pretraining/structure.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {

/// Teaches the encoder's last block to say the structure of the music (structure.h) on the last latent channels, while
/// the others stay what they are. The blocks before it are not changed, so that a step costs little.
class StructureStage : public TrainingStage {
 public:
  /// `vae`: the autoencoder as it was before.
  StructureStage(const VaeConfig& config, const Pieces& pieces, const Checkpoint& vae, int64_t batch,
                 double crop_seconds, const Placement& placement);

  /// The autoencoder's weights, its last latent channels empty on both sides.
  static void begin(Parameters& parameters, const VaeConfig& config, const std::string& vae_state);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// On held-out pieces, of variance about 1: error of the structure; drift of the other channels.
  Figures measure(const Weights& weights) const override;

 private:
  struct Errors {
    at::Tensor structure, drift;
  };
  Errors errors(const Weights& weights, const at::Tensor& audio) const;

  struct Frozen {
    Convolution::Result below;  // what the last block is given, [B, C, T]
    at::Tensor means;           // what the encoder said before, [B, C, frames]
  };
  Frozen run_frozen(const at::Tensor& audio, at::ScalarType dtype) const;

  VaeConfig config_;
  Structure structure_;
  Oobleck frozen_;
  int64_t batch_, crop_samples_;
  at::Device device_;
  std::vector<Wav> train_;
  at::Tensor held_out_;  // [crops, 2, samples]
};

}  // namespace carillon::pretraining
