#include "pretraining/reconstruction.h"

#include <ATen/ATen.h>

#include "core/vae/networks.h"
#include "pretraining/draw.h"

namespace carillon::pretraining {
namespace {

constexpr double kWaveformWeight = 10.0;
constexpr int64_t kAveraged = 64, kAveragedHop = 16;  // samples: silent from 750 Hz on, where latents tell no phase

at::Tensor low_tones(const at::Tensor& audio) { return at::avg_pool1d(audio, kAveraged, kAveragedHop); }

}  // namespace

at::Tensor decode(const Weights& weights, const VaeConfig& config, const at::Tensor& latents) {
  SignalPool pool;
  return Oobleck::load_decoder(weights.sub("decoder"), config, /*time_major=*/false).decode(latents, pool);
}

Loss ReconstructionError::loss(const at::Tensor& made, const at::Tensor& real) const {
  const at::Tensor spectral = spectral_(made, real), waveform = low_tones(made - real).abs().mean();
  return {spectral + kWaveformWeight * waveform, {{"spectral", spectral}, {"waveform", waveform}}};
}

Figures ReconstructionError::measure(const at::Tensor& crops,
                                     const std::function<at::Tensor(int64_t index)>& reconstruct) const {
  Draw draw(0, 0);
  double distance = 0, floor = 0, difference = 0;
  for (int64_t i = 0; i < crops.size(0); ++i) {
    const at::Tensor made = reconstruct(i), audio = crops.narrow(0, i, 1).to(made.device());
    const at::Tensor noise = draw.normal(audio.sizes()).to(audio.device()) * audio.square().mean().sqrt();
    distance += log_mel_distance(made, audio, sample_rate_).item<double>();
    floor += log_mel_distance(noise, audio, sample_rate_).item<double>();
    difference += (made - audio).abs().mean().item<double>();
  }
  const auto count = static_cast<double>(crops.size(0));
  return {{"logMel", distance / count},
          {"whiteNoise", floor / count},
          {"ratio", distance / floor},
          {"waveform", difference / count}};
}

}  // namespace carillon::pretraining
