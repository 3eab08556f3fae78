#include "core/vae/vae.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <sstream>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/error.h"
#include "core/vae/networks.h"
#include "core/vae/oscillators.h"

namespace carillon {

struct Vae::Networks {
  VaeConfig config;
  Placement placement;
  Oobleck encoder, decoder;
  int64_t window;
  std::vector<std::string> unused_tensors;
};

namespace {

void check_shape(const char* what, const at::Tensor& x, int64_t channels) {
  if (x.dim() == 3 && x.size(1) == channels && x.size(2) > 0) return;
  std::ostringstream message;
  message << what << " must be [batch, " << channels << ", length], not " << x.sizes();
  fail(ErrorCode::kBadArgument, message.str());
}

}  // namespace

Vae::Vae(std::unique_ptr<Networks> networks) : networks_(std::move(networks)) {}
Vae::Vae(Vae&&) noexcept = default;
Vae& Vae::operator=(Vae&&) noexcept = default;
Vae::~Vae() = default;

Vae Vae::load(const std::string& directory, const Placement& placement, const Control& control) {
  const c10::InferenceMode inference;
  const VaeConfig config = VaeConfig::read(directory);
  const Checkpoint checkpoint = Checkpoint::open(directory);
  checkpoint.require_memory(placement);
  const Weights weights = checkpoint.weights(placement);
  const bool time_major = can_run_time_major(placement, config);
  control.report(Stage::kLoad, 0, 2);
  Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config, time_major);
  control.report(Stage::kLoad, 1, 2);
  Oobleck decoder = Oobleck::load_decoder(weights.sub("decoder"), config, time_major);
  control.report(Stage::kLoad, 2, 2);
  return Vae(std::make_unique<Networks>(Networks{config, placement, std::move(encoder), std::move(decoder),
                                                 window_frames(placement), checkpoint.unused()}));
}

const VaeConfig& Vae::config() const { return networks_->config; }
const Placement& Vae::placement() const { return networks_->placement; }

const std::vector<std::string>& Vae::unused_tensors() const { return networks_->unused_tensors; }

at::Tensor Vae::decode(const at::Tensor& latents, const Control& control, const Listener& listener) const {
  const c10::InferenceMode inference;
  check_shape("latents", latents, config().decoder_input_channels);
  at::Tensor low_band;
  if (!config().oscillators.mean.empty()) low_band = play_oscillators(latents, config()).to(placement().device);
  const OnTile complete = [&](int64_t item, int64_t sample, const at::Tensor& audio) {
    if (low_band.defined()) audio.add_(low_band.narrow(0, item, audio.size(0)).narrow(2, sample, audio.size(2)));
    for (int64_t i = 0; listener && i < audio.size(0); ++i) {
      // The CPU's kernels leave it interleaved: nothing is copied then.
      listener(item + i, audio[i].t().contiguous().to(at::kCPU));
    }
  };
  return decode_tiled(networks_->decoder, latents.to(placement().device), config(), networks_->window, control,
                      complete);
}

Vae::Posterior Vae::encode(const at::Tensor& audio, const Control& control) const {
  const c10::InferenceMode inference;
  check_shape("audio", audio, config().audio_channels);
  if (audio.size(2) < config().samples_per_frame()) {
    fail(ErrorCode::kBadArgument,
         "audio of " + std::to_string(audio.size(2)) + " samples is shorter than one latent frame");
  }
  const at::Tensor moments =
      encode_tiled(networks_->encoder, audio.to(placement().device), config(), networks_->window, control);
  const auto halves = moments.chunk(2, 1);
  return {halves[0], at::softplus(halves[1]) + 1e-4};
}

}  // namespace carillon
