#pragma once
#include "core/checkpoint/config.h"
#include "pretraining/latents.h"
#include "pretraining/stage.h"

namespace carillon::pretraining {

/// The audio tokenizer and detokenizer: latents to codes, and codes to the log amplitudes of the latents.
class TokenizerStage : public TrainingStage {
 public:
  TokenizerStage(const DitConfig& config, const Pieces& pieces, const std::string& latents, int64_t batch,
                 double crop_seconds, at::Device device);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// error: mean squared error of held-out hints; variance: that of the amplitudes themselves; codes: distinct ones
  /// used.
  Figures measure(const Weights& weights) const override;

 private:
  DitConfig config_;
  Pieces pieces_;
  Latents train_, held_out_;
  int64_t batch_, crop_frames_;
  at::Device device_;
};

}  // namespace carillon::pretraining
