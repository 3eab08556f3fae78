#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/runtime/control.h"
#include "core/runtime/device.h"

namespace carillon {

/// Low-rank adaptation (Hu et al., 2021): delta = alpha / rank * B A.
struct LoraDesign {
  int64_t rank;
  double alpha;
  double dropout;  // 0 .. 1, of A's input, in training only
};

/// Kronecker products (Yeh et al., 2023, LyCORIS): delta = alpha / dimension * scalar * kron(w1, w2).
struct LokrDesign {
  int64_t dimension;  // rank of a factor that is wide enough to be split in two
  double alpha;      // counts as `dimension` where both factors are whole, and where it is 0
  int64_t factor;     // rows and columns of w1, where they divide; -1: the split nearest to a square
  bool decompose_both;
  bool use_tucker;  // of convolutions, and adapters have none: no effect
  bool use_scalar;
  bool weight_decompose;  // DoRA: a trained magnitude per output row
};

using AdapterDesign = std::variant<LoraDesign, LokrDesign>;

enum class TimestepSampling {
  kAuto,        // discrete for turbo models (is_turbo in random_draws.h), logit-normal for others
  kDiscrete,    // the eight times of the turbo schedule
  kLogitNormal  // the larger of two logit-normal numbers
};

struct TrainingOptions {
  std::string model_directory;
  std::string model_name;  // named in the files that are written; one with `turbo` in it makes a turbo model
  Placement placement;
  AdapterDesign adapter;
  std::string data_set_name;         // the folder's alone, without its path: named in the files that are written
  std::vector<std::string> samples;  // sample files, in the order of the data set
  std::string output_directory;
  double learning_rate;
  int64_t epochs;
  int64_t batch_size;
  int64_t gradient_accumulation;  // micro-batches of one optimiser step
  int64_t save_every_epochs;
  double shift;  // of the discrete times; 0 means 3
  uint64_t seed;
  bool gradient_checkpointing;  // less memory for more time; the result is the same
  TimestepSampling timestep_sampling;
  bool trim_condition;                           // leave out what a sample's encoder_attention_mask says is padding
  std::optional<double> condition_dropout = {};  // 0 .. 1; absent: 0 for turbo models, 0.15 for others
  std::optional<std::string> resume_from = {};   // a checkpoint folder of an earlier run, or any adapter
};

// What a run tells while it runs. Epochs count from 1, steps are finished optimiser steps.
namespace training_event {
struct Loaded {
  int64_t samples;
};
/// All that can be refused has been: the first step is next.
struct Started {
  std::string device, precision;  // cpu or cuda; bf16-mixed or 32-true
  int64_t trainable_parameters, total_steps;
};
struct Resumed {
  int64_t epoch, step;
  bool has_optimizer;  // false: of an adapter alone, so the optimiser begins anew
};
/// After an optimiser step; `loss` is the mean of its micro-batches.
struct Step {
  int64_t epoch, step;
  double loss, learning_rate, gradient_norm;
};
/// An optimiser step left out because gradients were not finite: those of `not_finite` of all `parameters`.
struct Skipped {
  int64_t epoch, step;
  int64_t not_finite, parameters;
};
struct Epoch {
  int64_t epoch;
  double seconds, loss;
};
struct Checkpoint {
  int64_t epoch;
  std::string path;
};
struct Notice {
  std::string text;
};
}  // namespace training_event

using TrainingEvent =
    std::variant<training_event::Loaded, training_event::Started, training_event::Resumed, training_event::Step,
                 training_event::Skipped, training_event::Epoch, training_event::Checkpoint, training_event::Notice>;

struct TrainingResult {
  bool completed;    // false: stopped
  std::string path;  // <output directory>/final, or the checkpoint of the stop
  int64_t steps;
};

/// Trains an adapter on the attention projections of its own copy of the model, by the objective the model was trained
/// on, and writes checkpoints/, logs/ and final/ below the output directory. Once `control` is cancelled, the run ends
/// before its next micro-batch with a checkpoint to resume from. Events come on the calling thread, whose priority is
/// lowered for good: give it a thread of its own.
///
/// Errors: kBadArgument for options out of range, for a checkpoint to resume from that does not fit them or has all
/// the epochs asked for; kBadCheckpoint for a model or sample that cannot be used; kStorage where the disk refuses
/// (finished checkpoints stay); kNotFinite where no step of a whole epoch had finite gradients; kOutOfMemory.
TrainingResult train(const TrainingOptions& options, const std::function<void(const TrainingEvent&)>& on_event,
                     const Control& control);

}  // namespace carillon
