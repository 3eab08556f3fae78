#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/diffusion/flow_matching.h"
#include "core/dit/dit.h"
#include "core/training/adamw.h"
#include "core/training/batches.h"
#include "core/training/learning_rate.h"
#include "core/training/run_files.h"
#include "core/training/trainable_adapter.h"
#include "core/training/training.h"
#include "core/training/training_state.h"

namespace carillon {

/// The part of a checkpoint that training runs.
struct TrainedModel {
  DitConfig config;
  Dit dit;
  at::Tensor null_condition;  // [1, 1, D]

  static TrainedModel load(const std::string& directory, const Placement& placement);
};

/// One run of train(): the loop, what it reports and when it saves.
class TrainingRun {
 public:
  TrainingRun(const TrainingOptions& options, std::function<void(const TrainingEvent&)> on_event,
              const Control& control);

  TrainingResult execute();

 private:
  /// Reads a sample as this run trains on it.
  TrainingSample sample_at(const std::string& path) const;
  void restore(const std::string& folder);
  /// Both return what is to be told of it.
  std::optional<std::string> restore_state(const std::string& folder);
  std::string restore_weights(const std::string& folder);
  /// False where the caller asked to stop.
  bool run_epoch();
  /// The mean loss of the next `count` micro-batches, whose gradients add up; nothing where the caller asked to stop.
  std::optional<double> accumulate(const std::vector<int64_t>& order, int64_t count);
  /// The loss of one micro-batch of the epoch.
  double micro_step(const std::vector<int64_t>& order, int64_t batch);
  void optimizer_step(double loss);
  void finish_epoch(double seconds);
  std::string save_checkpoint(const std::string& name);
  std::string save_final();
  /// What the files say of the run (reference training.md 8.4: run_metadata).
  std::string run_json() const;
  std::string config_json() const;

  const TrainingOptions options_;
  const std::function<void(const TrainingEvent&)> on_event_;
  const Control control_;
  RunFiles files_;
  TrainedModel model_;
  TrainableAdapter adapter_;
  std::vector<at::Tensor> parameters_;  // the adapter's
  AdamW optimizer_;
  TrainingIdentity identity_;
  DrawLaw law_;
  LayerRunner runner_;
  int64_t batches_per_epoch_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  LearningRate learning_rate_;
  TrainingPosition position_;
};

}  // namespace carillon
