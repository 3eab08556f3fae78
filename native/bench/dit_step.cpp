#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <memory>

#include "bench/benchmark.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/dit/dit.h"

namespace carillon::bench {

Repetition prepare_dit_step(const Settings& settings) {
  const c10::InferenceMode inference;
  const std::string directory = settings.checkpoints + "/acestep-v15-turbo";
  const DitConfig config = DitConfig::read(directory);
  const Weights weights = Checkpoint::open(directory).weights(settings.placement);
  const auto options = at::TensorOptions().device(settings.placement.device).dtype(settings.placement.dtype);
  const int64_t channels = config.audio_acoustic_hidden_dim;
  const auto dit = std::make_shared<Dit>(Dit::load(weights.sub("decoder"), config, Control()));
  const auto context = dit->embed_context(at::randn({1, settings.size, 2 * channels}, options));
  const CrossCache cross = dit->attend_to(at::randn({1, kConditionTokens, config.encoder_hidden_size}, options));
  const at::Tensor times = at::full({1}, 0.5, options.dtype(at::kFloat));
  const at::Tensor state = at::randn({1, settings.size, channels}, options);
  return [=] {
    const c10::InferenceMode guard;
    return seconds_of(
        [&] { dit->velocity(state, context, dit->modulate(times).at(0), cross).to(at::kFloat).sum().item(); });
  };
}

}  // namespace carillon::bench
