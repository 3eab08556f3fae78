#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/dit/dit.h"

namespace carillon {

/// A schedule is the flow times at which the model is evaluated, from 1 (noise) downwards.
/// The last step ends at 0 (data), which is not listed.
using Schedule = std::vector<double>;

/// Flow time at which `step` ends; 0 for the last step.
double next_time(const Schedule& schedule, size_t step);

/// `steps` evaluations at s*u / (1 + (s - 1)*u), u = 1, 1 - 1/steps, ..., 1/steps, where s is `shift`.
/// Throws kBadArgument for steps < 1 or a shift that is not a positive number.
Schedule shifted_schedule(int steps, double shift);

/// Schedule of turbo checkpoints: shifted_schedule with shift 3. They were distilled with 8 steps, but `steps` may be
/// any number.
Schedule turbo_schedule(int steps);

/// The 8-step table that turbo checkpoints were distilled on, with the shift rounded to 1, 2 or 3 (ties round down).
/// The reference implementation has only these three tables.
Schedule turbo_table(double shift);

/// A custom schedule: strictly descending times in (0, 1]; zeros at the end are dropped. Throws kBadArgument if a time
/// is invalid (the message names the first one) or no time is left.
Schedule custom_schedule(const std::vector<double>& timesteps);

/// Replaces each time by the nearest time of the turbo tables (ties round up), because distilled models only support
/// those. Zeros at the end and times after the first 20 are dropped.
Schedule snap_to_turbo_times(const std::vector<double>& timesteps);

/// Index of the scheduled time nearest to `time`; of two equally near ones the earlier.
size_t nearest_step(const Schedule& schedule, double time);

/// Flow matching (Lipman et al., 2023): the state on the straight line between data (time 0) and noise (time 1).
/// data and noise [B, T, C], times [B] -> [B, T, C].
at::Tensor noised(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times);

/// Inputs of the training loss for one batch.
struct FlowMatchingBatch {
  at::Tensor data, noise;        // [B, T, C]
  at::Tensor times;              // [B] float32
  at::Tensor context;            // [B, T, 2C]
  at::Tensor encoder_states;     // [B, L, E]
  at::Tensor encoder_mask = {};  // [B, L] bool, false for padding; undefined: no padding
};

/// The default LayerRunner: returns layer(x).
at::Tensor run_layer(const LayerFunction& layer, const at::Tensor& x);

/// Training loss, a float32 scalar: mean squared error between the velocity that the model predicts at `times` and
/// `noise - data`. Differentiable with respect to all weights and branches (nn::Branch) that require gradients.
at::Tensor flow_matching_loss(const Dit& dit, const FlowMatchingBatch& batch, const LayerRunner& run = run_layer);

}  // namespace carillon
