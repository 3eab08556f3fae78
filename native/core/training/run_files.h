#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/training/adapter_training.h"
#include "core/training/optimizer.h"
#include "core/training/trainable_adapter.h"

namespace carillon {

/// Files of a run in its output directory: checkpoints/, final/ and the log. Folders are written atomically. Throws
/// kStorage naming the path if writing fails.
class RunFiles {
 public:
  /// Creates the directory and its log, to which a resumed run appends.
  RunFiles(const std::string& output_directory, bool is_resumed);
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// Calls `fill` with a temporary folder, then moves this folder to `name` (checkpoints/NAME or final). Returns the
  /// path after the move.
  std::string publish(const std::string& name, const std::function<void(const std::string& folder)>& fill);

  /// Appends a JSON object as a line to logs/metrics.jsonl, atomically.
  void log(const std::string& json);

 private:
  std::string root_;
  int log_;
};

/// Position of a run between two optimiser steps.
struct TrainingPosition {
  int64_t epoch = 0;          // finished epochs
  int64_t batches = 0;        // finished micro-batches of the current epoch
  int64_t step = 0;           // optimiser steps; determines the learning rate
  int64_t epoch_steps = 0;    // optimiser steps of the current epoch
  double epoch_loss_sum = 0;  // sum of the losses of these steps

  TrainingPosition at_beginning_of(int64_t next_epoch) const { return {.epoch = next_epoch, .step = step}; }
};

/// Properties of a run that a resumed run must share.
struct TrainingIdentity {
  std::string adapter;  // the adapter design as JSON; dropout may differ
  std::string weights;  // a digest of the model's weights
  std::string order;    // everything that determines the order of samples

  static TrainingIdentity of(const TrainingOptions& options, const TrainableAdapter& adapter);
};

inline constexpr const char* kTrainingStateFile = "training_state.safetensors";

/// Whether `folder`, a checkpoint folder or its adapter/ sub-folder, belongs to a checkpoint with a training state.
bool has_training_state(const std::string& folder);

/// Writes the state that an exact resume needs: the position, the parameters and the optimiser's moments. Throws
/// kStorage.
void save_training_state(const std::string& path, const TrainingPosition& position, const TrainingIdentity& identity,
                         const TrainableAdapter& adapter, torch::optim::AdamW& optimizer);

struct RestoredTraining {
  TrainingPosition position;
  bool is_exact;  // false: samples, batches or seed differ, so the current epoch restarts
};

/// Restores adapter and optimiser from `folder`, which must have a training state (has_training_state). Throws
/// kBadArgument if the state belongs to another adapter or to other model weights, and kBadCheckpoint if a file is
/// damaged.
RestoredTraining restore_training(const std::string& folder, const TrainingIdentity& identity,
                                  const TrainableAdapter& adapter, torch::optim::AdamW& optimizer);

}  // namespace carillon
