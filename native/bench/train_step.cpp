#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <memory>

#include "bench/benchmark.h"
#include "core/diffusion/flow_matching.h"
#include "core/training/optimizer.h"
#include "core/training/trainable_adapter.h"

namespace carillon::bench {

Repetition prepare_train_step(const Settings& settings) {
  struct Step {
    DitConfig config;
    Dit dit;
    TrainableAdapter adapter;
    std::vector<at::Tensor> parameters;
    torch::optim::AdamW optimizer;
    explicit Step(const Settings& settings)
        : config(DitConfig::read(directory_of(settings))),
          dit(Dit::load(Checkpoint::open(directory_of(settings)).weights(settings.placement).sub("decoder"), config,
                        Control())),
          adapter(dit, LoraDesign{.rank = 64, .alpha = 128, .dropout = 0.1}, 42),
          parameters(tensors_of(adapter.parameters())),
          optimizer(make_adamw(parameters)) {}
    static std::string directory_of(const Settings& settings) { return settings.checkpoints + "/acestep-v15-turbo"; }
  };
  const auto step = std::make_shared<Step>(settings);
  const DitConfig& config = step->config;
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
      step->optimizer.zero_grad();
      step->adapter.set_dropout(1);
      flow_matching_loss(step->dit, batch).backward();
      clip_gradients(step->parameters, 1.0);
      take_step(step->optimizer, 1e-4);
      step->parameters[0].sum().item();  // waits for the device
    });
  };
}

}  // namespace carillon::bench
