#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/dit/dit.h"

namespace torch::optim {
class AdamW;
struct AdamWParamState;
}  // namespace torch::optim

namespace carillon {

/// libtorch's AdamW (Loshchilov and Hutter, 2019) with its defaults: betas 0.9 and 0.999, epsilon 1e-8, decoupled
/// weight decay 0.01. All moments exist from the start, so that they can be saved before the first step.
torch::optim::AdamW make_adamw(const std::vector<at::Tensor>& parameters);

/// Returns a reference to a parameter's step count and moments. To restore saved values, write them there.
torch::optim::AdamWParamState& adamw_state(torch::optim::AdamW& optimizer, const at::Tensor& parameter);

/// Makes one optimiser step with the current gradients of the parameters.
void apply_gradients(torch::optim::AdamW& optimizer, double learning_rate);

struct GradientNorm {
  double norm;         // Euclidean, of all gradients together
  int64_t not_finite;  // how many parameters have a gradient whose norm is not finite
};

/// Scales all gradients so that their joint norm is at most `limit`, unless one of them is not finite. Returns the norm
/// before scaling.
GradientNorm clip_gradients(const std::vector<at::Tensor>& parameters, double limit);

/// Learning rate: linear warm-up from a tenth of the peak, then cosine decay to a hundredth of the peak.
struct LearningRate {
  double peak;
  int64_t warmup_steps;
  int64_t decay_steps;

  /// Schedule for a run of `total_steps`. A tenth of them is warm-up, but at most 100 steps.
  static LearningRate plan(double peak, int64_t total_steps);

  /// Learning rate of the optimiser step `step`, counted from 0. After the planned steps, the decay starts again at the
  /// peak.
  double at(int64_t step) const;
};

/// Gradient checkpointing: a LayerRunner that keeps only the input of a layer and reruns the layer in the backward pass
/// (Chen et al., 2016). Gradients are the same as without checkpointing, on the CPU bit for bit.
at::Tensor run_layer_checkpointed(const LayerFunction& layer, const at::Tensor& x);

}  // namespace carillon
