#pragma once
#include "core/checkpoint/config.h"
#include "pretraining/pieces.h"
#include "pretraining/stage.h"
#include "pretraining/task_batch.h"
#include "pretraining/words.h"

namespace carillon::pretraining {

/// The text encoder alone, before there is any sound: it reads the facts of pieces that were composed and described but
/// never rendered, of which there can be many times more than of those with audio.
class WordsStage : public TrainingStage {
 public:
  WordsStage(const Qwen3Config& config, Pieces pieces, int64_t batch, at::Device device);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// Shares of held-out pieces whose fact was read: key, tempo (within 2 %), metre, genre; and the loss.
  Figures measure(const Weights& weights) const override;

 private:
  at::Tensor logits(const Weights& weights, const PaddedIds& texts) const;

  Qwen3Config config_;
  Pieces pieces_;
  int64_t batch_;
  at::Device device_;
};

}  // namespace carillon::pretraining
