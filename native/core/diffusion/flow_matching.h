#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/dit/dit.h"

namespace carillon {

/// A schedule is the flow times at which the model is evaluated, from 1 (noise) downwards.
/// The last evaluation leads to 0 (data), which is not listed. Held in double, whatever the model's type.
using Schedule = std::vector<double>;

/// The time after evaluation `step`: the next listed one, 0 after the last.
double next_time(const Schedule& schedule, size_t step);

/// `steps` evaluations at s*u / (1 + (s - 1)*u), u = 1, 1 - 1/steps, ..., 1/steps, where s is `shift`.
/// Throws kBadArgument for steps < 1 or a shift that is not a positive number.
Schedule shifted_schedule(int steps, double shift);

/// What turbo checkpoints run: the shift-3 formula at any number of steps. They were distilled for it at 8.
Schedule turbo_schedule(int steps);

/// The 8-step table turbo checkpoints were distilled on, with the shift rounded to 1, 2 or 3
/// (of two equally near the smaller). The reference implementation knows only these.
Schedule turbo_table(double shift);

/// A schedule given by hand: strictly descending times in (0, 1]; zeros at the end are dropped.
/// Throws kBadArgument naming the first value that breaks this, or when no value is left.
Schedule custom_schedule(const std::vector<double>& timesteps);

/// Each of the first 20 times replaced by the nearest one that occurs in a turbo table
/// (of two equally near the larger): a distilled model knows no others. Zeros at the end are dropped.
Schedule snap_to_turbo_times(const std::vector<double>& timesteps);

/// The evaluation whose time is nearest to `time`, the earliest if two are equally near.
size_t nearest_step(const Schedule& schedule, double time);

/// Flow matching (Lipman et al., 2023): the state on the straight line between data (time 0) and noise (time 1).
/// data and noise [B, T, C], times [B] -> [B, T, C].
at::Tensor noised(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times);

/// What one loss is taken over.
struct FlowMatchingBatch {
  at::Tensor data, noise;        // [B, T, C]
  at::Tensor times;              // [B] float32
  at::Tensor context;            // [B, T, 2C]
  at::Tensor encoder_states;     // [B, L, E]
  at::Tensor encoder_mask = {};  // [B, L] bool, false for padding; undefined: there is none
};

/// Runs a layer at once.
at::Tensor run_layer(const LayerFunction& layer, const at::Tensor& x);

/// Mean squared error between the model's velocity at the batch's times and noise - data, a float32 scalar.
/// Differentiable in the branches and weights of the model's layers that require gradients.
at::Tensor flow_matching_loss(const Dit& dit, const FlowMatchingBatch& batch, const LayerRunner& run = run_layer);

}  // namespace carillon
