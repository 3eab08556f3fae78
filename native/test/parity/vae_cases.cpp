#include <ATen/ATen.h>

#include "core/vae/vae.h"
#include "test/parity/case.h"

namespace carillon::parity {
namespace {

/// The renderer's latents and audio are float32 in models of every type.
void run_vae(Case& c) {
  const Vae vae = Vae::load(c.checkpoint_directory, c.placement, Control());
  if (c.has_input("latents")) c.compare("audio", at::stack(vae.decode(c.stored_input("latents"), Control())));
  if (c.has_input("audio")) {
    const Vae::Posterior posterior = vae.encode(c.stored_input("audio"), Control());
    c.compare("mean", posterior.mean);
    c.compare("std", posterior.std);
  }
}

const bool vae_registered = register_module("vae", Depth::kVae, run_vae);

}  // namespace
}  // namespace carillon::parity
