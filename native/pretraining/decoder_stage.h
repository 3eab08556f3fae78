#pragma once
#include <string>

#include "pretraining/autoencoder.h"
#include "pretraining/latents.h"
#include "pretraining/pieces.h"

namespace carillon::pretraining {

/// The decoder alone, from the latents that the encoder left on disk, a little blurred as those of a DiT are.
class DecoderStage : public TrainingStage {
 public:
  DecoderStage(const VaeConfig& config, const Pieces& pieces, const std::string& latents, int64_t batch,
               double crop_seconds, at::Device device);

  /// Makes the decoder's leaves those that the autoencoder's stage has learnt.
  static void begin(Parameters& parameters, const std::string& structure_state);

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
};

}  // namespace carillon::pretraining
