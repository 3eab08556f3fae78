#include "core/training/optimizer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

namespace carillon {

using torch::optim::AdamWParamState;

torch::optim::AdamW make_adamw(const std::vector<at::Tensor>& parameters) {
  torch::optim::AdamW optimizer(parameters);
  for (const auto& parameter : parameters) {
    auto state = std::make_unique<AdamWParamState>();
    state->exp_avg(at::zeros_like(parameter.detach())).exp_avg_sq(at::zeros_like(parameter.detach()));
    optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }
  return optimizer;
}

AdamWParamState& adamw_state(torch::optim::AdamW& optimizer, const at::Tensor& parameter) {
  return static_cast<AdamWParamState&>(*optimizer.state().at(parameter.unsafeGetTensorImpl()));
}

void apply_gradients(torch::optim::AdamW& optimizer, double learning_rate) {
  optimizer.param_groups()[0].options().set_lr(learning_rate);
  optimizer.step();
}

GradientNorm clip_gradients(const std::vector<at::Tensor>& parameters, double limit) {
  constexpr double kEpsilon = 1e-6;
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return {0.0, 0};
  const at::Tensor norms = at::stack(at::_foreach_norm(gradients)).to(at::kDouble);
  const GradientNorm found{norms.norm().item<double>(), norms.isfinite().logical_not().sum().item<int64_t>()};
  const double scale = limit / (found.norm + kEpsilon);
  if (found.not_finite == 0 && scale < 1.0) at::_foreach_mul_(gradients, scale);
  return found;
}

LearningRate LearningRate::plan(double peak, int64_t total_steps) {
  constexpr int64_t kMostWarmupSteps = 100, kWarmupShare = 10;
  const int64_t warmup = std::clamp<int64_t>(total_steps / kWarmupShare, 1, kMostWarmupSteps);
  return {peak, warmup, std::max<int64_t>(1, total_steps - warmup)};
}

double LearningRate::at(int64_t step) const {
  constexpr double kFirst = 0.1, kLast = 0.01;
  if (step < warmup_steps) {
    return peak * (kFirst + (1.0 - kFirst) * static_cast<double>(step) / static_cast<double>(warmup_steps));
  }
  const double done = static_cast<double>((step - warmup_steps) % decay_steps) / static_cast<double>(decay_steps);
  return peak * (kLast + (1.0 - kLast) * (1.0 + std::cos(std::numbers::pi * done)) / 2.0);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Wraps a layer so that autograd can store it.
struct KeptLayer : torch::CustomClassHolder {
  explicit KeptLayer(LayerFunction function) : function(std::move(function)) {}
  LayerFunction function;
};

struct Pass {
  at::Tensor input, output;
};

/// Runs the layer with gradients enabled, in the forward and in the backward pass. With gradients disabled libtorch
/// uses other kernels, which round differently.
Pass run_from(const LayerFunction& layer, const at::Tensor& x) {
  const c10::AutoGradMode enabled(true);
  const at::Tensor input = x.detach().requires_grad_();
  return {input, layer(input)};
}

struct CheckpointedLayer : torch::autograd::Function<CheckpointedLayer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const c10::intrusive_ptr<KeptLayer>& layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = c10::IValue::make_capsule(layer);
    return run_from(layer->function, x).output.detach();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto kept = context->saved_data["layer"].toCapsule();
    const auto& layer = static_cast<const KeptLayer&>(*kept).function;
    const Pass pass = run_from(layer, context->get_saved_variables()[0]);
    torch::autograd::backward({pass.output}, {gradients[0]});
    return {pass.input.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor run_layer_checkpointed(const LayerFunction& layer, const at::Tensor& x) {
  return CheckpointedLayer::apply(x, c10::make_intrusive<KeptLayer>(layer));
}

}  // namespace carillon
