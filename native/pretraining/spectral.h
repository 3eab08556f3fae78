#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace carillon::pretraining {

/// Mel spectra of one window length.
class MelSpectrum {
 public:
  MelSpectrum(int64_t sample_rate, int64_t window, int64_t bands, at::Device device);

  struct Spectra {
    at::Tensor linear;  // magnitudes [N, window / 2 + 1, hops], of a sine of amplitude a about a / 2
    at::Tensor mel;     // [N, bands, hops]
  };
  /// waves [N, samples], at least `window` samples, a quarter window apart.
  Spectra operator()(const at::Tensor& waves) const;

 private:
  int64_t window_;
  at::Tensor hann_, filters_;  // [window], [bands, window / 2 + 1]
};

/// Left, right, mid and side of audio [B, 2, samples]: [4 B, samples].
at::Tensor stereo_views(const at::Tensor& audio);

/// The distance of two waveforms as ears have it: log-mel and log-magnitude spectra at several resolutions
/// (Yamamoto et al., 2020; Kumar et al., 2023), of left, right, mid and side.
class SpectralLoss {
 public:
  SpectralLoss(int64_t sample_rate, at::Device device);

  /// audio [B, 2, samples] each -> a scalar, differentiable.
  at::Tensor operator()(const at::Tensor& made, const at::Tensor& real) const;

 private:
  std::vector<MelSpectrum> resolutions_;
};

/// Mean distance of natural-log mel spectra (80 bands, 2048 samples a window, floor -100 dB) of audio [B, 2, samples].
at::Tensor log_mel_distance(const at::Tensor& made, const at::Tensor& real, int64_t sample_rate);

}  // namespace carillon::pretraining
