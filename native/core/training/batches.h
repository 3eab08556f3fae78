#pragma once
#include <cstdint>
#include <vector>

#include "core/diffusion/flow_matching.h"
#include "core/dit/dit.h"
#include "core/runtime/device.h"
#include "core/training/random_draws.h"
#include "core/training/training_sample.h"

namespace carillon {

/// Options for the random draws of each sample: noise, timestep and condition dropout.
struct SamplingOptions {
  FlowTimeDistribution time;
  double condition_dropout;   // probability, 0 .. 1
  at::Tensor null_condition;  // [1, 1, D]
  uint64_t seed;              // seed of the run
};

/// Random order of `count` samples in an epoch.
std::vector<int64_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch);

/// Batch of all samples in a micro-batch that have the same length.
struct MicroBatchPart {
  FlowMatchingBatch batch;
  double weight;  // share of this part in the frames of the micro-batch
};

/// Splits a micro-batch into parts with samples of equal length, so that no frame is padded. Shorter conditions are
/// padded and masked. The weighted losses of the parts sum to the MSE over all frames.
///
/// The random draws of a sample depend on the seed, on `micro_step` (the index of the micro-batch in the run) and on
/// the sample's position in the micro-batch.
std::vector<MicroBatchPart> make_parts(const std::vector<TrainingSample>& samples, const SamplingOptions& options,
                                       int64_t micro_step, const Placement& placement);

}  // namespace carillon
