#include "pretraining/spectral.h"

#include <ATen/ATen.h>

#include <cmath>

namespace carillon::pretraining {
namespace {

constexpr double kFloor = 1e-5;        // -100 dB
constexpr double kLinearFloor = 1e-4;  // a single bin below it has steep gradients that nobody hears

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// Triangles whose corners are evenly spaced in mel, each of weight 1: [bands, bins]. A band narrower than a bin
/// still hears the nearest one.
at::Tensor mel_filters(int64_t sample_rate, int64_t window, int64_t bands) {
  const int64_t bins = window / 2 + 1;
  at::Tensor filters = at::zeros({bands, bins});
  auto weights = filters.accessor<float, 2>();
  const double bin_hertz = static_cast<double>(sample_rate) / static_cast<double>(window);
  const double step = to_mel(static_cast<double>(sample_rate) / 2) / static_cast<double>(bands + 1);
  for (int64_t band = 0; band < bands; ++band) {
    const double centre_mel = step * static_cast<double>(band + 1);
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

at::Tensor log_distance(const at::Tensor& a, const at::Tensor& b, double floor) {
  return ((a + floor).log() - (b + floor).log()).abs().mean();
}

}  // namespace

MelSpectrum::MelSpectrum(int64_t sample_rate, int64_t window, int64_t bands, at::Device device)
    : window_(window),
      hann_(at::hann_window(window, at::TensorOptions().dtype(at::kFloat).device(device))),
      filters_(mel_filters(sample_rate, window, bands).to(device)) {}

MelSpectrum::Spectra MelSpectrum::operator()(const at::Tensor& waves) const {
  const at::Tensor bins = at::view_as_real(at::stft(waves, window_, window_ / 4, window_, hann_, /*normalized=*/false,
                                                    /*onesided=*/true, /*return_complex=*/true));
  constexpr double kSmallest = 1e-12;  // the root has no gradient at 0
  const at::Tensor linear = (bins.square().sum(-1) + kSmallest).sqrt() * (2.0 / static_cast<double>(window_));
  return {linear, at::matmul(filters_, linear)};
}

at::Tensor stereo_views(const at::Tensor& audio) {
  const at::Tensor left = audio.select(1, 0), right = audio.select(1, 1);
  return at::cat({left, right, (left + right) / 2, (left - right) / 2});
}

SpectralLoss::SpectralLoss(int64_t sample_rate, at::Device device) {
  for (const auto& [window, bands] : {std::pair{2048, 160}, {1024, 100}, {512, 64}, {256, 32}, {128, 16}}) {
    resolutions_.emplace_back(sample_rate, window, bands, device);
  }
}

at::Tensor SpectralLoss::operator()(const at::Tensor& made, const at::Tensor& real) const {
  const at::Tensor views = stereo_views(made), real_views = stereo_views(real);
  at::Tensor sum;
  for (const MelSpectrum& spectrum : resolutions_) {
    const auto a = spectrum(views), b = spectrum(real_views);
    const at::Tensor loudness = (b.linear - a.linear).norm() / (b.linear.norm() + kFloor);  // spectral convergence
    const at::Tensor distance = log_distance(a.mel, b.mel, kFloor) +
                                0.5 * log_distance(a.linear, b.linear, kLinearFloor) + loudness;
    sum = sum.defined() ? sum + distance : distance;
  }
  return sum / static_cast<double>(resolutions_.size());
}

at::Tensor log_mel_distance(const at::Tensor& made, const at::Tensor& real, int64_t sample_rate) {
  const MelSpectrum spectrum(sample_rate, 2048, 80, made.device());
  const auto channels = [](const at::Tensor& audio) { return audio.reshape({-1, audio.size(2)}); };
  return log_distance(spectrum(channels(made)).mel, spectrum(channels(real)).mel, kFloor);
}

}  // namespace carillon::pretraining
