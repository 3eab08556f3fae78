#include "core/vae/vae.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

constexpr double kLeastDeviation = 1e-4;
constexpr int64_t kSilenceReach = 32;  // frames; more than the receptive field of any encoder

void check_shape(const char* what, const at::Tensor& x, int64_t channels) {
  require(
      x.dim() == 3 && x.size(1) == channels && x.size(2) > 0,
      std::string(what) + " must be [batch, " + std::to_string(channels) + ", length], not " + shape_text(x.sizes()));
}

}  // namespace

Vae Vae::load(const ModelSource& source, const Placement& placement, const Control& control) {
  const c10::InferenceMode inference;
  Vae vae;
  vae.config_ = VaeConfig::read(source);
  vae.placement_ = placement;
  vae.window_ = window_frames(placement);
  const Checkpoint checkpoint = Checkpoint::open(source);
  checkpoint.require_memory(placement);
  const Weights weights = checkpoint.weights(placement);
  const Products products = choose_products(placement, vae.config_);
  control.report(Stage::kLoad, 0, 2);
  if (vae.config_.spectral_encoder) {
    vae.spectral_encoder_ = SpectralEncoder::load(weights.sub("encoder"), vae.config_);
  } else {
    vae.encoder_ = Oobleck::load_encoder(weights.sub("encoder"), vae.config_, products);
  }
  control.report(Stage::kLoad, 1, 2);
  vae.decoder_ = Oobleck::load_decoder(weights.sub("decoder"), vae.config_, products);
  control.report(Stage::kLoad, 2, 2);
  vae.unused_tensors_ = checkpoint.unused();
  return vae;
}

std::vector<at::Tensor> Vae::decode(const at::Tensor& latents, const Control& control,
                                    const Listener& listener) const {
  const c10::InferenceMode inference;
  check_shape("latents", latents, config().decoder_input_channels);
  at::Tensor low_band;
  if (!config().oscillators.mean.empty()) low_band = play_oscillators(latents, config()).to(placement().device);
  const OnTile complete = [&](int64_t item, int64_t sample, const at::Tensor& audio) {
    if (low_band.defined()) audio.add_(low_band.narrow(0, item, audio.size(0)).narrow(2, sample, audio.size(2)));
    for (int64_t i = 0; listener && i < audio.size(0); ++i) {
      // This copies no data on the CPU, because the CPU kernels already write interleaved audio.
      listener(item + i, audio[i].t().contiguous().to(at::kCPU));
    }
  };
  return decode_tiled(decoder_, latents.to(placement().device), config(), window_, control, complete);
}

Vae::Posterior Vae::encode(const at::Tensor& audio, const Control& control) const {
  const c10::InferenceMode inference;
  check_shape("audio", audio, config().audio_channels);
  require(audio.size(2) >= config().samples_per_frame(),
          "audio of " + std::to_string(audio.size(2)) + " samples is shorter than one latent frame");
  if (spectral_encoder_) {
    const at::Tensor mean = spectral_encoder_->encode(audio, control);
    return {mean, at::full_like(mean, kLeastDeviation)};  // the spectral encoder is deterministic
  }
  const at::Tensor moments = encode_tiled(encoder_, audio.to(placement().device), config(), window_, control);
  const auto halves = moments.chunk(2, 1);
  return {halves[0], at::softplus(halves[1]) + kLeastDeviation};
}

at::Tensor Vae::encode_silence(int64_t frames, const Control& control) const {
  // Silence gives equal latent frames, except near the ends of the audio.
  const int64_t reach = std::max(kSilenceReach, tile_overlap_frames(config()));
  const int64_t samples = 2 * reach * config().samples_per_frame();
  const at::Tensor mean = encode(at::zeros({1, config().audio_channels, samples}), control).mean.transpose(1, 2);
  const at::Tensor start = mean.narrow(1, 0, std::min(frames, reach));
  const at::Tensor rest = mean.narrow(1, reach - 1, 1).expand({1, frames - start.size(1), -1});
  return at::cat({start, rest}, 1);
}

}  // namespace carillon
