#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/dit/dit.h"

namespace carillon {

/// A schedule lists the flow times at which the model is evaluated, from 1 (noise) downwards. The last step ends at 0
/// (data), which is not in the list.
using Schedule = std::vector<double>;

/// Flow time at which `step` ends; 0 for the last step.
double next_time(const Schedule& schedule, size_t step);

/// Schedule of `steps` times s*u / (1 + (s - 1)*u), where s is `shift` and u is 1, 1 - 1/steps, ..., 1/steps. Throws
/// kBadArgument if `steps` is not 1 to 1000 or `shift` is not a positive number.
Schedule shifted_schedule(int steps, double shift);

/// Schedule of turbo checkpoints: shifted_schedule with shift 3. Turbo checkpoints were distilled with 8 steps, but
/// they accept any number of steps.
Schedule turbo_schedule(int steps);

/// A custom schedule: strictly descending times in (0, 1]. Zeros at the end are dropped. Throws kBadArgument if no time
/// is left or a time is invalid; the message names the first invalid time.
Schedule custom_schedule(const std::vector<double>& timesteps);

/// Replaces each time by the nearest time of the turbo tables (ties round up), because distilled models support only
/// those times. Drops zeros at the end, and all times after the first 20.
Schedule snap_to_turbo_times(const std::vector<double>& timesteps);

/// Index of the scheduled time nearest to `time`. If two times are equally near, the earlier step wins.
size_t nearest_step(const Schedule& schedule, double time);

/// The state at `times` [B] on the straight line from data (time 0) to noise (time 1), as in flow matching (Lipman et
/// al., 2023). data, noise and the result are [B, T, C].
at::Tensor add_noise(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times);

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

/// Training loss: the mean squared error of the velocity that the model predicts at `times`. The target is `noise -
/// data`. Returns a float32 scalar, differentiable with respect to all weights and branches (nn::Branch) that require
/// gradients.
at::Tensor flow_matching_loss(const Dit& dit, const FlowMatchingBatch& batch, const LayerRunner& run = run_layer);

}  // namespace carillon
