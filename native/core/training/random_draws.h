#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/training/adapter_training.h"

namespace carillon {

/// What a run draws random numbers for.
enum class Stream : uint64_t { kInitialWeights, kOrder, kSample, kDropout };

/// The seed of one drawing of a run: equal for equal arguments, unrelated for others. Nothing a run draws depends on
/// what it drew before, so one that goes on from a checkpoint needs no generator's state, and a layer that runs twice
/// for its gradient drops the same inputs.
uint64_t stream_seed(uint64_t run_seed, Stream stream, std::initializer_list<int64_t> counters);

/// A generator of its own on `device`. The numbers of one seed differ between kinds of devices.
at::Generator seeded_generator(uint64_t seed, at::Device device);

/// Whether a model was distilled to the eight times of the turbo schedule: its config says so, or its name does.
bool is_turbo(const TrainingOptions& options, const DitConfig& model);

/// The law by which the flow times of training are drawn.
class TimeLaw {
 public:
  /// Each of the times of an eight-step schedule alike; shift 0 means 3, that of turbo models.
  static TimeLaw discrete(double shift);
  /// The larger of two numbers sigmoid(mean + deviation * normal): the model's own training drew both ends of an
  /// interval and used the upper.
  static TimeLaw logit_normal(double mean, double deviation);
  /// What the options choose for this model. Throws kBadArgument for a shift that is not one.
  static TimeLaw choose(const TrainingOptions& options, const DitConfig& model);

  double draw(at::Generator& generator) const;

 private:
  std::vector<double> times_;  // empty: logit-normal
  double mean_ = 0, deviation_ = 0;
};

}  // namespace carillon
