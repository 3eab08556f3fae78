#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/training/adapter_training.h"
#include "core/training/optimizer.h"
#include "core/training/trainable_adapter.h"

namespace carillon {

/// The files of one run below its output directory: checkpoints/, final/ and the log. A folder is there whole or not at
/// all. Every refusal of the disk is kStorage naming the path.
class RunFiles {
 public:
  /// Creates the directory and its log, which a continued run goes on writing.
  RunFiles(const std::string& output_directory, bool is_continued);
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// `fill` writes into the folder it is given, which then takes the place of `name` (checkpoints/NAME or final).
  /// Returns the path.
  std::string publish(const std::string& name, const std::function<void(const std::string& folder)>& fill);

  /// Adds a line, a JSON object, to logs/metrics.jsonl: whole or, where the disk refuses, not at all.
  void log(const std::string& json);

 private:
  std::string root_;
  int log_;
};

/// Where a run stands between two optimiser steps.
struct TrainingPosition {
  int64_t epoch = 0;    // finished epochs
  int64_t batches = 0;  // micro-batches of the next epoch that are done
  int64_t step = 0;     // optimiser steps, by which the learning rate goes
  // The epoch under way:
  int64_t epoch_steps = 0;
  double epoch_loss_sum = 0;  // over those steps

  TrainingPosition at_beginning_of(int64_t next_epoch) const { return {.epoch = next_epoch, .step = step}; }
};

/// What a run is made of, as far as another may not go on with it.
struct TrainingIdentity {
  std::string adapter;  // the design; another dropout is no other adapter
  std::string weights;  // a digest of the model's weights
  std::string order;    // what decides which sample comes when: the same place in an epoch is the same only under it

  static TrainingIdentity of(const TrainingOptions& options, const TrainableAdapter& adapter);
};

inline constexpr const char* kTrainingStateFile = "training_state.safetensors";

/// Whether a checkpoint folder, or the one around an adapter/, holds a training state.
bool has_training_state(const std::string& folder);

/// Writes everything that an exact continuation needs: position, parameters, moments. Throws kStorage.
void save_training_state(const std::string& path, const TrainingPosition& position, const TrainingIdentity& identity,
                         const TrainableAdapter& adapter, torch::optim::AdamW& optimizer);

struct RestoredTraining {
  TrainingPosition position;
  bool is_exact;  // false: the samples, their batches or the seed are others, so the epoch under way begins anew
};

/// Reads a checkpoint folder that has a state, or the adapter/ in one, into adapter and optimiser. Throws kBadArgument
/// saying what does not fit this run: another adapter, other weights; kBadCheckpoint for a damaged file.
RestoredTraining restore_training(const std::string& folder, const TrainingIdentity& identity,
                                  const TrainableAdapter& adapter, torch::optim::AdamW& optimizer);

}  // namespace carillon
