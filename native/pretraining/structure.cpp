#include "pretraining/structure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carillon::pretraining {
namespace {

constexpr int64_t kMostBeats = 4, kShareOfBeats = 16, kMostStructure = 16, kShareOfStructure = 4;
constexpr int64_t kBandWindow = 4096, kPitchWindow = 8192;  // 85 ms for beats, 171 ms for semitones from 100 Hz on
constexpr std::array<double, 5> kBandEdges = {0, 150, 1500, 5000, 24001};
constexpr double kLowestPitch = 100, kHighestPitch = 2000, kTuning = 440;  // Hz
constexpr double kQuietest = 1e-7;  // energy
// Means of the log amplitudes over 1400 s of the data set.
constexpr std::array<double, 4> kBandCentres = {-2.54, -1.85, -3.86, -6.13};
constexpr double kPitchCentre = -4.2;
constexpr double kBandScale = 1.92, kPitchScale = 3.04;
constexpr double kLoudnessKept = 0.2;  // of what moves all pitch classes together
constexpr int64_t kBands = kBandEdges.size() - 1;

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

at::Tensor band_centres(int64_t bands) {
  return at::tensor(at::ArrayRef<double>(kBandCentres.data(), static_cast<size_t>(bands)), at::kFloat);
}

/// log amplitudes [..., rows] -> structure, and back.
at::Tensor structure_of(const at::Tensor& amplitudes) {
  const int64_t bands = std::min(kBands, amplitudes.size(-1)), pitches = amplitudes.size(-1) - bands;
  const at::Tensor low = kBandScale * (amplitudes.narrow(-1, 0, bands) - band_centres(bands).to(amplitudes.device()));
  if (pitches == 0) return low;
  const at::Tensor pitch = amplitudes.narrow(-1, bands, pitches) - kPitchCentre;
  const at::Tensor loudness = pitch.mean(-1, /*keepdim=*/true);
  return at::cat({low, kPitchScale * (pitch - (1 - kLoudnessKept) * loudness)}, -1);
}

at::Tensor amplitudes_of(const at::Tensor& structure) {
  const int64_t bands = std::min(kBands, structure.size(-1)), pitches = structure.size(-1) - bands;
  const at::Tensor low = structure.narrow(-1, 0, bands) / kBandScale + band_centres(bands).to(structure.device());
  if (pitches == 0) return low;
  const at::Tensor pitch = structure.narrow(-1, bands, pitches) / kPitchScale;
  const at::Tensor loudness = pitch.mean(-1, /*keepdim=*/true) / kLoudnessKept;
  return at::cat({low, pitch + (1 - kLoudnessKept) * loudness + kPitchCentre}, -1);
}

/// Energies that a structure [T, rows] stands for less those of another, as a structure again.
at::Tensor structure_without(const at::Tensor& mix, const at::Tensor& track) {
  const auto energy = [](const at::Tensor& structure) { return (2 * amplitudes_of(structure)).exp(); };
  return structure_of(0.5 * (energy(mix) - energy(track)).clamp_min(kQuietest).log());
}

}  // namespace

LatentParts LatentParts::of(int64_t latent_channels) {
  const int64_t beats = std::min(kMostBeats, latent_channels / kShareOfBeats);
  const int64_t structure = std::min(kMostStructure, latent_channels / kShareOfStructure);
  return {latent_channels - beats - structure, beats, structure};
}

Structure::Structure(const VaeConfig& config, at::Device device)
    : channels_(LatentParts::of(config).structure), hop_(config.samples_per_frame()) {
  const auto rate = static_cast<double>(config.sampling_rate);
  const auto hann = [&](int64_t window) { return at::hann_window(window, at::device(device).dtype(at::kFloat)); };
  bands_ = {kBandWindow, hann(kBandWindow), filters(kBands, kBandWindow, rate, band_of).to(device)};
  pitches_ = {kPitchWindow, hann(kPitchWindow), filters(kPitchClasses, kPitchWindow, rate, pitch_class_of).to(device)};
}

at::Tensor Structure::log_amplitudes(const Part& part, const at::Tensor& middle, int64_t frames) const {
  // Windows are centred on the middles of frames.
  const int64_t before = (part.window - hop_) / 2, after = part.window - hop_ - before;
  const at::Tensor padded = at::constant_pad_nd(middle, {before, after});
  const at::Tensor bins = at::view_as_real(at::stft(padded, part.window, hop_, part.window, part.hann,
                                                    /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true));
  const double scale = 4.0 / static_cast<double>(part.window);
  const at::Tensor energy = at::matmul(part.filters, bins.square().sum(-1) * (scale * scale)).narrow(2, 0, frames);
  return 0.5 * (energy + kQuietest).log();
}

at::Tensor Structure::operator()(const at::Tensor& audio) const {
  const int64_t frames = audio.size(2) / hop_;
  const at::Tensor middle = audio.mean(1);
  const at::Tensor rows =
      at::cat({log_amplitudes(bands_, middle, frames), log_amplitudes(pitches_, middle, frames)}, 1);
  return structure_of(rows.narrow(1, 0, channels_).transpose(1, 2)).transpose(1, 2);
}

at::Tensor without(const at::Tensor& mix, const at::Tensor& track, const at::Tensor& silence) {
  const LatentParts parts = LatentParts::of(mix.size(1));
  const auto of_waves = [&](const at::Tensor& latents) { return latents.narrow(1, 0, parts.first_of_structure()); };
  const auto of_structure = [&](const at::Tensor& latents) {
    return latents.narrow(1, parts.first_of_structure(), parts.structure);
  };
  return at::cat(
      {of_waves(mix) - of_waves(track) + of_waves(silence), structure_without(of_structure(mix), of_structure(track))},
      1);
}

}  // namespace carillon::pretraining
