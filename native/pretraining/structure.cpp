#include "pretraining/structure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carillon::pretraining {
namespace {

constexpr int64_t kMostChannels = 16, kShare = 4;
constexpr int64_t kBandWindow = 4096, kPitchWindow = 8192;  // 85 ms for beats, 171 ms for semitones from 100 Hz on
constexpr std::array<double, 5> kBandEdges = {0, 150, 1500, 5000, 24001};
constexpr double kLowestPitch = 100, kHighestPitch = 2000, kTuning = 440;  // Hz
constexpr int64_t kPitchClasses = 12;
constexpr double kQuietest = 1e-7;  // energy
// Mean and deviation of the log amplitudes over 1400 s of the data set.
constexpr double kBandCentre = -3.5, kBandSpread = 1.3, kPitchCentre = -4.2, kPitchSpread = 1.15;
constexpr int64_t kBands = kBandEdges.size() - 1;
constexpr double kKeyContrast = 4;  // pitch classes of a piece deviate by a quarter of theirs over all pieces

template <typename RowOf>
at::Tensor filters(int64_t rows, int64_t window, double sample_rate, const RowOf& row_of) {
  at::Tensor matrix = at::zeros({rows, window / 2 + 1});
  for (int64_t bin = 0; bin <= window / 2; ++bin) {
    const int64_t row = row_of(static_cast<double>(bin) * sample_rate / static_cast<double>(window));
    if (row >= 0) matrix[row][bin] = 1;
  }
  return matrix;
}

int64_t band_of(double hertz) {
  return std::upper_bound(kBandEdges.begin(), kBandEdges.end(), hertz) - kBandEdges.begin() - 1;
}

/// -1 outside the range that is listened to.
int64_t pitch_class_of(double hertz) {
  if (hertz < kLowestPitch || hertz >= kHighestPitch) return -1;
  const int64_t semitone = std::lround(static_cast<double>(kPitchClasses) * std::log2(hertz / kTuning));
  return ((semitone % kPitchClasses) + kPitchClasses) % kPitchClasses;
}

/// Energies that a structure [T, rows] stands for less those of another, as a structure again.
at::Tensor structure_without(const at::Tensor& mix, const at::Tensor& track) {
  at::Tensor centre = at::full({mix.size(1)}, kPitchCentre), spread = at::full({mix.size(1)}, kPitchSpread);
  const int64_t bands = std::min(kBands, mix.size(1));
  centre.narrow(0, 0, bands).fill_(kBandCentre);
  spread.narrow(0, 0, bands).fill_(kBandSpread);
  const auto energy = [&](const at::Tensor& structure) { return (2 * (structure * spread + centre)).exp(); };
  const at::Tensor rest = (energy(mix) - energy(track)).clamp_min(kQuietest);
  return (0.5 * rest.log() - centre) / spread;
}

}  // namespace

int64_t structure_channels(int64_t latent_channels) { return std::min(kMostChannels, latent_channels / kShare); }
int64_t structure_channels(const VaeConfig& config) { return structure_channels(config.decoder_input_channels); }

Structure::Structure(const VaeConfig& config, at::Device device)
    : channels_(structure_channels(config)), hop_(config.samples_per_frame()) {
  const auto rate = static_cast<double>(config.sampling_rate);
  const auto hann = [&](int64_t window) { return at::hann_window(window, at::device(device).dtype(at::kFloat)); };
  bands_ = {kBandWindow, hann(kBandWindow), filters(kBands, kBandWindow, rate, band_of).to(device), kBandCentre,
            kBandSpread};
  pitches_ = {kPitchWindow, hann(kPitchWindow), filters(kPitchClasses, kPitchWindow, rate, pitch_class_of).to(device),
              kPitchCentre, kPitchSpread};
}

at::Tensor Structure::part(const Part& part, const at::Tensor& middle, int64_t frames) const {
  // Windows are centred on the middles of frames.
  const int64_t before = (part.window - hop_) / 2, after = part.window - hop_ - before;
  const at::Tensor padded = at::constant_pad_nd(middle, {before, after});
  const at::Tensor bins = at::view_as_real(at::stft(padded, part.window, hop_, part.window, part.hann,
                                                    /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true));
  const double scale = 4.0 / static_cast<double>(part.window);
  const at::Tensor energy = at::matmul(part.filters, bins.square().sum(-1) * (scale * scale)).narrow(2, 0, frames);
  return (0.5 * (energy + kQuietest).log() - part.centre) / part.spread;
}

at::Tensor Structure::operator()(const at::Tensor& audio) const {
  const int64_t frames = audio.size(2) / hop_;
  const at::Tensor middle = audio.mean(1);
  return at::cat({part(bands_, middle, frames), part(pitches_, middle, frames)}, 1).narrow(1, 0, channels_);
}

at::Tensor character(const at::Tensor& mean_structure) {
  const int64_t rows = mean_structure.size(1), bands = std::min(kBands, rows);
  if (rows == bands) return mean_structure;
  const at::Tensor pitches = mean_structure.narrow(1, bands, rows - bands);
  return at::cat({mean_structure.narrow(1, 0, bands), kKeyContrast * (pitches - pitches.mean(1, /*keepdim=*/true))}, 1);
}

at::Tensor without(const at::Tensor& mix, const at::Tensor& track, const at::Tensor& silence) {
  const int64_t structure = structure_channels(mix.size(1)), waves = mix.size(1) - structure;
  const auto of_waves = [&](const at::Tensor& latents) { return latents.narrow(1, 0, waves); };
  const auto of_structure = [&](const at::Tensor& latents) { return latents.narrow(1, waves, structure); };
  return at::cat({of_waves(mix) - of_waves(track) + of_waves(silence),
                  structure_without(of_structure(mix), of_structure(track))},
                 1);
}

}  // namespace carillon::pretraining
