#pragma once
#include "core/checkpoint/config.h"
#include "core/dit/dit.h"
#include "pretraining/latents.h"
#include "pretraining/stage.h"
#include "pretraining/task_batch.h"
#include "pretraining/words.h"

namespace carillon::pretraining {

/// The DiT with its condition encoder and the text encoder: flow matching at the times that turbo models run,
/// of every task type, some items without conditions. The audio tokenizer is given and stays as it is.
class DitStage : public TrainingStage {
 public:
  /// With guidance the objective of a velocity v is noise - data + share (v - v without conditions). Where that is
  /// reached, v is what classifier-free guidance of scale 1 / (1 - share) gives (Tang et al., 2025, Diffusion models
  /// without classifier-free guidance): turbo models run without guidance. Tasks on tracks take a larger share than
  /// others: a name is all that tells one track from the rest, and music that follows its words too closely stands
  /// still.
  static constexpr double kGuidedShare = 0.45, kGuidedTrackShare = 0.7;

  DitStage(const DitConfig& config, const Qwen3Config& text_config, const Pieces& pieces, const std::string& latents,
           std::shared_ptr<Parameters> tokenizer, bool with_guidance, int64_t batch, double longest_seconds,
           at::Device device);

  /// First weights of a DiT that has none, and the leaves whose width no config states. `words_state`: what the text
  /// encoder has learnt without sound.
  static void begin(Parameters& parameters, const DitConfig& config, const std::string& words_state);

  Loss loss(const Weights& weights, Draw& draw) const override;
  /// Text2music of held-out pieces. loss, beats, structure: mean over all turbo times and these channels; lossAt100 ..
  /// and structureAt100 ..: at each time in percent; otherWordsAt100: structure with another piece's words.
  /// Of what eight steps of the sampler make: sampledTempo: share of clocks within 4 % of the tempo asked for;
  /// sampledKey: correlation of mean pitch classes with those of the pieces; sampledDeviation: of structure, to theirs.
  Figures measure(const Weights& weights) const override;

 private:
  /// All that a step of the sampler needs besides the state.
  struct Prepared {
    Dit dit;
    at::ScalarType dtype;  // of its input
    ContextTokens context;
    CrossCache conditions;
    at::Tensor facts;  // logits that the words gave, [B, number_count]
  };
  Prepared prepare(const Weights& weights, const TaskBatch& batch, const at::Tensor& unconditional) const;
  at::Tensor velocity(const Prepared& prepared, const at::Tensor& state, const at::Tensor& times) const;
  /// What the objective adds to noise - data, with the share of every item, [B].
  at::Tensor guidance(const Weights& weights, const Prepared& prepared, const at::Tensor& velocity,
                      const at::Tensor& state, const at::Tensor& times, const at::Tensor& shares) const;
  /// Mean square of the error of the velocity per item and channel, [B, C].
  at::Tensor velocity_error(const Prepared& prepared, const TaskBatch& batch, const at::Tensor& times,
                            const at::Tensor& noise) const;
  /// Source latents, those of covers read through their codes.
  at::Tensor source_of(const TaskBatch& batch) const;
  Figures measure_samples(const Prepared& prepared, const TaskBatch& batch, const at::Tensor& noise) const;

  DitConfig config_;
  Qwen3Config text_config_;
  Pieces pieces_;
  Latents train_, held_out_;
  TaskBatches train_batches_, held_out_batches_;
  std::shared_ptr<Parameters> tokenizer_;
  bool with_guidance_;
  int64_t batch_;
  at::Device device_;
};

}  // namespace carillon::pretraining
