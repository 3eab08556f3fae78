#pragma once
#include "core/checkpoint/config.h"
#include "pretraining/latents.h"
#include "pretraining/stage.h"
#include "pretraining/task_batch.h"

namespace carillon::pretraining {

/// The text encoder's weights stand under this name beside those of the DiT.
inline constexpr const char* kTextEncoder = "text_encoder";
/// What guesses a song's character (structure.h) from the last text token, which knows all words. It teaches the text encoder what key and genre sound like
/// before cross-attention has found the few tokens that say so; checkpoints go without it.
inline constexpr const char* kWordsHead = "words_head";

/// The DiT with its condition encoder and the text encoder: flow matching at the times that turbo models run,
/// of every task type, some items without conditions. The audio tokenizer is given and stays as it is.
class DitStage : public TrainingStage {
 public:
  DitStage(const DitConfig& config, const Qwen3Config& text_config, const Pieces& pieces, const std::string& latents,
           std::shared_ptr<Parameters> tokenizer, int64_t batch, double longest_seconds, at::Device device);

  /// First weights of a DiT that has none, and the leaves whose width no config states.
  static void begin(Parameters& parameters, const DitConfig& config);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// loss: text2music of held-out pieces, mean over all turbo times; lossAt100 .. lossAt30: at each time in percent;
  /// structureAt100 .. structureAt30: of the structure's channels alone; otherWordsAt100: with another piece's words.
  Figures measure(const Weights& weights) const override;

 private:
  struct Errors {
    at::Tensor velocity;  // mean square per item and channel, [B, C]
    at::Tensor words;     // of the song's character that the last text token guesses, a scalar
  };
  Errors errors(const Weights& weights, const TaskBatch& batch, const at::Tensor& times, const at::Tensor& noise,
                const at::Tensor& unconditional) const;
  /// words [B, L, H], mask [B, L], mean_latents [B, C].
  at::Tensor words_error(const Weights& weights, const at::Tensor& words, const at::Tensor& mask,
                         const at::Tensor& mean_latents) const;

  DitConfig config_;
  Qwen3Config text_config_;
  Pieces pieces_;
  Latents train_, held_out_;
  TaskBatches train_batches_, held_out_batches_;
  std::shared_ptr<Parameters> tokenizer_;
  int64_t batch_;
  at::Device device_;
};

}  // namespace carillon::pretraining
