#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/checkpoint/model_source.h"
#include "core/runtime/choice.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"

namespace carillon {

/// Low-rank adaptation (Hu et al., 2021): delta = (alpha / rank) * B * A.
struct LoraDesign {
  int64_t rank;
  double alpha;
  double dropout;  // 0 .. 1, applied to the input of A during training
};

/// Kronecker products (Yeh et al., 2023, LyCORIS): delta = (alpha / dimension) * scalar * kron(w1, w2).
struct LokrDesign {
  int64_t dimension;  // rank of a factor that is a product of two matrices
  double alpha;       // 0 means `dimension`, which is always used if neither factor is a product
  int64_t factor;     // number of rows and columns of w1, if it divides the weight's; -1: w1 and w2 of similar size
  bool decompose_both;
  bool use_tucker;  // no effect: adapters have no convolutions
  bool use_scalar;
  bool weight_decompose;  // DoRA: a trained magnitude per output row
};

using AdapterDesign = std::variant<LoraDesign, LokrDesign>;

enum class TimestepSampling {
  kAuto,        // discrete for turbo models (is_turbo in random_draws.h), logit-normal for others
  kDiscrete,    // the eight times of the turbo schedule
  kLogitNormal  // the larger of two logit-normal draws
};

template <>
inline constexpr Choices<TimestepSampling> kChoices<TimestepSampling> = {
    {"auto", TimestepSampling::kAuto},
    {"discrete", TimestepSampling::kDiscrete},
    {"logit_normal", TimestepSampling::kLogitNormal}};

struct TrainingOptions {
  ModelSource model;
  std::string model_name;  // written to files; a name with `turbo` marks a turbo model
  Placement placement;
  AdapterDesign adapter;
  std::string data_set_name;         // folder name without path; written to files
  std::vector<std::string> samples;  // sample files, in the order of the data set
  std::string output_directory;
  double learning_rate;
  int64_t epochs;
  int64_t batch_size;
  int64_t gradient_accumulation;  // micro-batches of one optimiser step
  int64_t save_every_epochs;
  double shift;  // shift of the discrete times; 0 means 3
  uint64_t seed;
  bool gradient_checkpointing;  // saves memory but takes longer; the result is the same
  TimestepSampling timestep_sampling;
  bool trim_condition;                           // drop condition tokens that encoder_attention_mask marks as padding
  std::optional<double> condition_dropout = {};  // 0 .. 1; absent: 0 for turbo models, 0.15 for others
  std::optional<std::string> resume_from = {};   // a checkpoint folder of an earlier run, or any adapter
};

// Events of a run. `epoch` counts from 1; `step` is the number of finished optimiser steps.
namespace training_event {
struct SamplesLoaded {
  int64_t samples;
};
/// All options and files have been checked. The first step follows.
struct RunStart {
  std::string device, precision;  // cpu or cuda; bf16-mixed or 32-true
  int64_t trainable_parameters, total_steps;
};
struct RunResume {
  int64_t epoch, step;
  bool has_optimizer;  // false: the source is only an adapter, so the optimiser starts over
};
/// An optimiser step is finished. `loss` is the mean over its micro-batches.
struct StepDone {
  int64_t epoch, step;
  double loss, learning_rate, gradient_norm;
};
/// An optimiser step was skipped, because `not_finite` of the adapter's `parameters` tensors have NaN or infinite
/// gradients.
struct StepSkipped {
  int64_t epoch, step;
  int64_t not_finite, parameters;
};
struct EpochDone {
  int64_t epoch;
  double seconds, loss;
};
struct CheckpointSaved {
  int64_t epoch;
  std::string path;
};
struct RunNotice {
  std::string text;
};
}  // namespace training_event

using TrainingEvent = std::variant<training_event::SamplesLoaded, training_event::RunStart, training_event::RunResume,
                                   training_event::StepDone, training_event::StepSkipped, training_event::EpochDone,
                                   training_event::CheckpointSaved, training_event::RunNotice>;

struct TrainingResult {
  bool completed;    // false if the run was stopped
  std::string path;  // <output directory>/final, or the checkpoint saved when the run was stopped
  int64_t steps;
};

/// Loads its own copy of the model and trains an adapter of the attention projections. Writes checkpoints/, logs/ and
/// final/ to the output directory. If `control` is cancelled, the run saves a checkpoint and ends before the next
/// micro-batch. Events are sent on the calling thread. That thread should do nothing else, because the run lowers its
/// priority permanently.
///
/// Errors:
/// - kBadArgument: an option is out of range, or the checkpoint does not match the options or has finished all epochs
/// - kBadCheckpoint: a model or sample is unusable
/// - kStorage: writing failed; finished checkpoints stay
/// - kNotFinite: no step of an epoch had finite gradients
/// - kOutOfMemory
TrainingResult train(const TrainingOptions& options, const std::function<void(const TrainingEvent&)>& on_event,
                     const Control& control);

}  // namespace carillon
