#include <ATen/ATen.h>

#include <memory>

#include "bench/benchmark.h"
#include "core/diffusion/flow_matching.h"
#include "core/training/adamw.h"
#include "core/training/run.h"

namespace carillon::bench {

Repetition prepare_train_step(const Settings& settings) {
  struct Step {
    TrainedModel model;
    TrainableAdapter adapter;
    std::vector<at::Tensor> parameters;
    AdamW optimizer;
    explicit Step(const Settings& settings)
        : model(TrainedModel::load(settings.checkpoints + "/acestep-v15-turbo", settings.placement)),
          adapter(model.dit, LoraDesign{}, 42),
          parameters(tensors_of(adapter.parameters())),
          optimizer(parameters) {}
  };
  const auto step = std::make_shared<Step>(settings);
  const DitConfig& config = step->model.config;
  const auto options = at::TensorOptions().device(settings.placement.device).dtype(settings.placement.dtype);
  const int64_t channels = config.audio_acoustic_hidden_dim;
  const FlowMatchingBatch batch{
      .data = at::randn({1, settings.size, channels}, options.dtype(at::kFloat)),
      .noise = at::randn({1, settings.size, channels}, options.dtype(at::kFloat)),
      .times = at::full({1}, 0.5, options.dtype(at::kFloat)),
      .context = at::randn({1, settings.size, 2 * channels}, options),
      .encoder_states = at::randn({1, kConditionTokens, config.encoder_hidden_size}, options)};
  return [=] {
    return seconds_of([&] {
      clear_gradients(step->parameters);
      step->adapter.set_dropout(1);
      flow_matching_loss(step->model.dit, batch).backward();
      clip_gradients(step->parameters, gradient_norm(step->parameters), 1.0);
      step->optimizer.step(0, 1e-4);
      step->parameters[0].sum().item();  // waits for the device
    });
  };
}

}  // namespace carillon::bench
