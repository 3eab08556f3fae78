#pragma once
#include <string>

#include "pretraining/discriminator.h"
#include "pretraining/latents.h"
#include "pretraining/pieces.h"
#include "pretraining/reconstruction.h"

namespace carillon::pretraining {

/// The decoder, from the exact latents (latent_space.h) blurred up to what a DiT makes of them, and its discriminator.
class DecoderStage : public TrainingStage {
 public:
  DecoderStage(const VaeConfig& config, const Pieces& pieces, const std::string& latents, int64_t batch,
               double crop_seconds, at::Device device);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// Of held-out pieces, as ReconstructionError says.
  Figures measure(const Weights& weights) const override;

 private:
  struct Crop {
    at::Tensor latents, audio;  // [C, frames], [2, samples]
  };
  Crop crop(const Latents& latents, const Piece& piece, const std::string& track, int64_t first_frame) const;

  VaeConfig config_;
  Pieces pieces_;
  Latents train_, held_out_;
  int64_t batch_, crop_frames_;
  at::Device device_;
  ReconstructionError error_;
  Discriminator discriminator_;
};

}  // namespace carillon::pretraining
