#include "core/training/random_draws.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cmath>
#include <mutex>

#include "core/diffusion/flow_matching.h"

namespace carillon {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): changing one input bit changes about half of the output
/// bits.
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

uint64_t stream_seed(uint64_t run_seed, RandomStream stream, std::initializer_list<int64_t> counters) {
  uint64_t seed = mixed(mixed(run_seed) ^ static_cast<uint64_t>(stream));
  for (const int64_t counter : counters) seed = mixed(seed ^ static_cast<uint64_t>(counter));
  return seed;
}

at::Generator seeded_generator(uint64_t seed, at::Device device) {
  at::Generator shared = at::globalContext().defaultGenerator(device);  // a handle to shared state, so it is cloned
  at::Generator own = [&] {
    const std::lock_guard lock(shared.mutex());
    return shared.clone();
  }();
  own.set_current_seed(seed);
  return own;
}

bool is_turbo(const TrainingOptions& options, const DitConfig& model) {
  return model.is_turbo || options.model_name.find("turbo") != std::string::npos;
}

FlowTimeDistribution FlowTimeDistribution::discrete(double shift) {
  constexpr int kSteps = 8;
  FlowTimeDistribution distribution;
  distribution.times_ = shift == 0.0 ? turbo_schedule(kSteps) : shifted_schedule(kSteps, shift);
  return distribution;
}

FlowTimeDistribution FlowTimeDistribution::logit_normal(double mean, double deviation) {
  FlowTimeDistribution distribution;
  distribution.mean_ = mean;
  distribution.deviation_ = deviation;
  return distribution;
}

FlowTimeDistribution FlowTimeDistribution::choose(const TrainingOptions& options, const DitConfig& model) {
  const bool is_discrete = options.timestep_sampling == TimestepSampling::kAuto
                               ? is_turbo(options, model)
                               : options.timestep_sampling == TimestepSampling::kDiscrete;
  return is_discrete ? discrete(options.shift) : logit_normal(model.timestep_mu, model.timestep_sigma);
}

double FlowTimeDistribution::draw(PhiloxStream& stream) const {
  if (!times_.empty()) return times_[static_cast<size_t>(stream.uniform() * static_cast<double>(times_.size()))];
  const double larger = stream.normal({2}).max().item<float>();
  return 1.0 / (1.0 + std::exp(-(mean_ + deviation_ * larger)));
}

}  // namespace carillon
