#pragma once
#include <ATen/core/Tensor.h>

#include "core/dit/dit.h"

namespace carillon {

/// Flow matching (Lipman et al., 2023): the state on the straight line between data (time 0) and noise (time 1).
/// data and noise [B, T, C], times [B] -> [B, T, C].
at::Tensor noised(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times);

/// Mean squared error between the model's velocity at `times` [B] float32 and noise - data, a float32 scalar.
/// context [B, T, 2C], encoder_states [B, L, E]. Differentiable in whatever of the model requires gradients.
at::Tensor flow_matching_loss(const Dit& dit, const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times,
                              const at::Tensor& context, const at::Tensor& encoder_states);

}  // namespace carillon
