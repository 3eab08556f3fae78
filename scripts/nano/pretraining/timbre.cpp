#include "pretraining/timbre.h"

#include <ATen/ATen.h>

#include "pretraining/spectral.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kWindow = 2048;
constexpr double kLowest = 250, kHighest = 16000;  // Hz
constexpr double kQuietest = 1e-8;                 // energy
constexpr double kLargestDeviation = 3, kSmallestShare = 0.01;

}  // namespace

LogMel::LogMel(const VaeConfig& config, at::Device device)
    : hop_(config.samples_per_frame() / kPerFrame),
      hann_(at::hann_window(kWindow, at::device(device).dtype(at::kFloat))),
      filters_(mel_filters(config.sampling_rate, kWindow, {kBands, kLowest, kHighest}).to(device)) {}

at::Tensor LogMel::operator()(const at::Tensor& middle) const {
  const at::Tensor energy = at::matmul(filters_, energies_around(middle, hop_, hann_));
  const at::Tensor log = 0.5 * (energy + kQuietest).log();  // [B, bands, frames * kPerFrame]
  return log.unflatten(2, {-1, kPerFrame}).transpose(2, 3).flatten(1, 2);
}

Timbre Timbre::learn(const at::Tensor& spectra, int64_t channels) {
  const at::Tensor mean = spectra.mean(0), centred = spectra - mean;
  const at::Tensor covariance = at::matmul(centred.t(), centred) / static_cast<double>(spectra.size(0));
  const auto [variances, directions] = at::linalg_eigh(covariance);  // ascending
  const at::Tensor all = variances.flip(0).clamp_min(0).sqrt();
  const at::Tensor deviations = at::maximum(all.narrow(0, 0, channels), kSmallestShare * all[0]);
  const at::Tensor scales = kLargestDeviation / (deviations * deviations[0]).sqrt();
  return {mean, directions.flip(1).narrow(1, 0, channels).t() * scales.unsqueeze(1)};
}

at::Tensor Timbre::operator()(const at::Tensor& spectra) const {
  return at::matmul(components_.to(spectra.device()), spectra - mean_.to(spectra.device()).unsqueeze(1));
}

}  // namespace carillon::pretraining
