#include "core/training/layer_checkpointing.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace carillon {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A layer as a value that autograd can keep.
struct KeptLayer : torch::CustomClassHolder {
  explicit KeptLayer(LayerFunction function) : function(std::move(function)) {}
  LayerFunction function;
};

struct Pass {
  at::Tensor input, output;
};

/// Both passes run the layer with gradients on: without them it would take other kernels, which round differently.
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
