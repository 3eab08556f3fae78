#include "pretraining/spectral.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon::pretraining {
namespace {

constexpr double kFloor = 1e-5;        // -100 dB
constexpr double kLinearFloor = 1e-4;  // a single bin below it has steep gradients that nobody hears

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

constexpr int64_t kPooled = 4;                // hops whose level is compared
constexpr int64_t kPatch = 8, kPatchHop = 4;  // rows and hops whose texture is compared
constexpr size_t kSideResolution = 1;         // the side, of which latents say nothing, is heard at one alone
constexpr double kTextureWeight = 12;

at::Tensor log_distance(const at::Tensor& a, const at::Tensor& b, double floor) {
  return ((a + floor).log() - (b + floor).log()).abs().mean();
}

/// The level around every place, without the flicker of single hops: magnitudes [N, rows, hops] -> [N, rows, fewer].
at::Tensor level(const at::Tensor& magnitudes) { return at::avg_pool1d(magnitudes, kPooled, kPooled / 2); }

/// How much log magnitudes [N, rows, hops] differ from one value to the next along `axis`, on average over patches.
at::Tensor roughness(const at::Tensor& log, int64_t axis) {
  const int64_t pairs = log.size(axis) - 1;
  const at::Tensor differences = (log.narrow(axis, 1, pairs) - log.narrow(axis, 0, pairs)).abs();
  return at::avg_pool2d(differences, kPatch, kPatchHop);
}

/// Squared: what a patch has is uncertain and skewed, and the nearest guess by absolute values, the median, is too
/// smooth.
at::Tensor texture_distance(const at::Tensor& made, const at::Tensor& real, double floor) {
  const at::Tensor a = (made + floor).log(), b = (real + floor).log();
  return (roughness(a, 1) - roughness(b, 1)).square().mean() + (roughness(a, 2) - roughness(b, 2)).square().mean();
}

at::Tensor distance(const MelSpectrum& spectrum, const at::Tensor& made, const at::Tensor& real) {
  const auto a = spectrum(made), b = spectrum(real);
  const at::Tensor convergence = (b.linear - a.linear).norm() / (b.linear.norm() + kFloor);
  const at::Tensor texture =
      texture_distance(a.mel, b.mel, kFloor) + texture_distance(a.linear, b.linear, kLinearFloor);
  return log_distance(level(a.mel), level(b.mel), kFloor) + convergence + kTextureWeight * texture;
}

}  // namespace

at::Tensor mel_filters(int64_t sample_rate, int64_t window, const MelBands& mel) {
  const int64_t bins = window / 2 + 1, bands = mel.count;
  at::Tensor filters = at::zeros({bands, bins});
  auto weights = filters.accessor<float, 2>();
  const double bin_hertz = static_cast<double>(sample_rate) / static_cast<double>(window);
  const double lowest = to_mel(mel.lowest_hertz);
  const double step = (to_mel(mel.highest_hertz) - lowest) / static_cast<double>(bands + 1);
  for (int64_t band = 0; band < bands; ++band) {
    const double centre_mel = lowest + step * static_cast<double>(band + 1);
    const double low = to_hertz(centre_mel - step), centre = to_hertz(centre_mel), high = to_hertz(centre_mel + step);
    for (int64_t bin = 0; bin < bins; ++bin) {
      const double hertz = bin_hertz * static_cast<double>(bin);
      const double rise = (hertz - low) / (centre - low), fall = (high - hertz) / (high - centre);
      weights[band][bin] = static_cast<float>(std::max(0.0, std::min(rise, fall)));
    }
    const auto nearest = static_cast<int64_t>(std::lround(centre / bin_hertz));
    if (filters[band].sum().item<float>() == 0) weights[band][std::min(nearest, bins - 1)] = 1;
  }
  return filters / filters.sum(1, /*keepdim=*/true);
}

at::Tensor short_time_energies(const at::Tensor& waves, int64_t hop, const at::Tensor& hann) {
  const int64_t window = hann.size(0);
  const at::Tensor bins = at::stft(waves, window, hop, window, hann, /*normalized=*/false, /*onesided=*/true,
                                   /*return_complex=*/true);
  return at::view_as_real(bins).square().sum(-1);
}

at::Tensor energies_around(const at::Tensor& waves, int64_t hop, const at::Tensor& hann) {
  const int64_t window = hann.size(0), before = (window - hop) / 2;
  const at::Tensor padded = at::constant_pad_nd(waves, {before, window - hop - before});
  const double scale = 4.0 / static_cast<double>(window);
  return short_time_energies(padded, hop, hann).narrow(2, 0, waves.size(1) / hop) * (scale * scale);
}

MelSpectrum::MelSpectrum(int64_t sample_rate, int64_t window, int64_t bands, at::Device device)
    : window_(window),
      hann_(at::hann_window(window, at::TensorOptions().dtype(at::kFloat).device(device))),
      filters_(mel_filters(sample_rate, window, {bands, 0, static_cast<double>(sample_rate) / 2}).to(device)) {}

MelSpectrum::Spectra MelSpectrum::operator()(const at::Tensor& waves) const {
  constexpr double kSmallest = 1e-12;  // the root has no gradient at 0
  const at::Tensor energies = short_time_energies(waves, window_ / 4, hann_);
  const at::Tensor linear = (energies + kSmallest).sqrt() * (2.0 / static_cast<double>(window_));
  return {linear, at::matmul(filters_, linear)};
}

SpectralLoss::SpectralLoss(int64_t sample_rate, at::Device device) {
  for (const auto& [window, bands] : {std::pair{2048, 160}, {1024, 100}, {512, 64}, {256, 32}}) {
    resolutions_.emplace_back(sample_rate, window, bands, device);
  }
}

at::Tensor SpectralLoss::operator()(const at::Tensor& made, const at::Tensor& real) const {
  const auto side = [](const at::Tensor& audio) { return (audio.select(1, 0) - audio.select(1, 1)) / 2; };
  at::Tensor sum = distance(resolutions_[kSideResolution], side(made), side(real));
  for (const MelSpectrum& spectrum : resolutions_) sum = sum + distance(spectrum, made.mean(1), real.mean(1));
  return sum / static_cast<double>(resolutions_.size() + 1);
}

at::Tensor log_mel_distance(const at::Tensor& made, const at::Tensor& real, int64_t sample_rate) {
  const MelSpectrum spectrum(sample_rate, 2048, 80, made.device());
  const auto channels = [](const at::Tensor& audio) { return audio.reshape({-1, audio.size(2)}); };
  return log_distance(spectrum(channels(made)).mel, spectrum(channels(real)).mel, kFloor);
}

}  // namespace carillon::pretraining
