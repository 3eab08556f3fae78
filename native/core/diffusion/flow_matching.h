#pragma once
#include <ATen/core/Tensor.h>

#include "core/dit/dit.h"

namespace carillon {

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
