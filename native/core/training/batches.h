#pragma once
#include <cstdint>
#include <vector>

#include "core/diffusion/flow_matching.h"
#include "core/dit/dit.h"
#include "core/runtime/device.h"
#include "core/training/random_draws.h"
#include "core/training/training_sample.h"

namespace carillon {

/// What is drawn for each sample: noise, a flow time, and whether it trains without its condition.
struct DrawLaw {
  TimeLaw time;
  double condition_dropout;   // 0 .. 1
  at::Tensor null_condition;  // [1, 1, D]
  uint64_t seed;              // of the run
};

/// The order in which an epoch goes through `count` samples.
std::vector<int64_t> epoch_order(int64_t count, uint64_t seed, int64_t epoch);

/// Samples of one length as one batch.
struct Part {
  FlowMatchingBatch batch;
  double weight;  // its share of the frames of the micro-batch
};

/// A micro-batch as parts whose losses, weighted, add up to its mean squared error over all real frames. Samples of
/// equal length make one part: the model neither sees padded frames nor spends time on them. Shorter conditions are
/// padded and masked. `micro_step` counts the micro-batches of the whole run and decides, with the place of a sample in
/// the micro-batch, what is drawn.
std::vector<Part> make_parts(const std::vector<TrainingSample>& samples, const DrawLaw& law, int64_t micro_step,
                             const Placement& placement);

}  // namespace carillon
