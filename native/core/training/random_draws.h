#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/diffusion/noise.h"
#include "core/training/adapter_training.h"

namespace carillon {

/// Purpose of a run's random numbers. Each purpose has its own stream of numbers.
enum class RandomStream : uint64_t { kInitialWeights, kOrder, kSample, kDropout };

/// Returns the seed of a draw, a hash of the arguments. No draw depends on earlier draws, so a resumed run needs no
/// generator state. A layer that runs again for gradient checkpointing drops the same inputs as before.
uint64_t stream_seed(uint64_t run_seed, RandomStream stream, std::initializer_list<int64_t> counters);

/// A new generator on `device`. The same seed gives different numbers on a CPU and on a GPU.
at::Generator seeded_generator(uint64_t seed, at::Device device);

/// Whether a model was distilled to the eight timesteps of the turbo schedule, according to its config or its name.
bool is_turbo(const TrainingOptions& options, const DitConfig& model);

/// Distribution of training timesteps.
class FlowTimeDistribution {
 public:
  /// Uniform over the eight timesteps of a schedule with this shift. Shift 0 means 3, the shift of turbo models.
  static FlowTimeDistribution discrete(double shift);
  /// Draws sigmoid(mean + deviation * normal) twice and takes the larger number, as the model's original training
  /// did: it drew both ends of an interval and used the upper one.
  static FlowTimeDistribution logit_normal(double mean, double deviation);
  /// Chooses the distribution according to the options and the model. Throws kBadArgument for an invalid shift.
  static FlowTimeDistribution choose(const TrainingOptions& options, const DitConfig& model);

  double draw(PhiloxStream& stream) const;

 private:
  std::vector<double> times_;  // empty: logit-normal
  double mean_ = 0, deviation_ = 0;
};

}  // namespace carillon
