#include <ATen/ATen.h>

#include <memory>

#include "bench/benchmark.h"
#include "core/vae/vae.h"

namespace carillon::bench {

Repetition prepare_vae_decode(const Settings& settings) {
  const auto vae = std::make_shared<Vae>(Vae::load(settings.checkpoints + "/vae", settings.placement, Control()));
  const at::Tensor latents = at::randn({1, vae->config().decoder_input_channels, settings.size});
  return [=] { return seconds_of([&] { vae->decode(latents, Control()); }); };
}

}  // namespace carillon::bench
