#include "core/training/random_streams.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <mutex>

namespace carillon {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the input changes half of the output.
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

uint64_t stream_seed(uint64_t run_seed, Stream stream, std::initializer_list<int64_t> counters) {
  uint64_t seed = mixed(mixed(run_seed) ^ static_cast<uint64_t>(stream));
  for (const int64_t counter : counters) seed = mixed(seed ^ static_cast<uint64_t>(counter));
  return seed;
}

at::Generator seeded_generator(uint64_t seed, at::Device device) {
  at::Generator shared = at::globalContext().defaultGenerator(device);  // a handle: libtorch makes new ones by cloning
  at::Generator own = [&] {
    const std::lock_guard lock(shared.mutex());
    return shared.clone();
  }();
  own.set_current_seed(seed);
  return own;
}

}  // namespace carillon
