#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <initializer_list>

namespace carillon {

/// What a run draws random numbers for.
enum class Stream : uint64_t { kInitialWeights, kOrder, kSample, kDropout };

/// The seed of one drawing of a run: equal for equal arguments, unrelated for others. Nothing a run draws depends on
/// what it drew before, so one that goes on from a checkpoint needs no generator's state, and a layer that runs twice
/// for its gradient drops the same inputs.
uint64_t stream_seed(uint64_t run_seed, Stream stream, std::initializer_list<int64_t> counters);

/// A generator of its own on `device`. The numbers of one seed differ between kinds of devices.
at::Generator seeded_generator(uint64_t seed, at::Device device);

}  // namespace carillon
