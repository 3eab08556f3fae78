#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace carillon::pretraining {

struct MelBands {
  int64_t count;
  double lowest_hertz, highest_hertz;
};
/// Triangles whose corners are evenly spaced in mel, each of weight 1: [bands, window / 2 + 1]. A band narrower than a
/// bin still hears the nearest one.
at::Tensor mel_filters(int64_t sample_rate, int64_t window, const MelBands& bands);

/// Squared magnitudes of the short-time Fourier transform, without padding: waves [N, samples] ->
/// [N, window / 2 + 1, hops].
at::Tensor short_time_energies(const at::Tensor& waves, int64_t hop, const at::Tensor& hann);

/// Spectra of the windows around the middles of all stretches of `hop` samples: waves [B, n hop] -> energies
/// [B, window / 2 + 1, n], of a sine of amplitude a about a square.
at::Tensor energies_around(const at::Tensor& waves, int64_t hop, const at::Tensor& hann);

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

/// The distance of two waveforms as ears have it, of the middle at several resolutions and of the side: log-mel levels
/// and spectral convergence (Yamamoto et al., 2020; Kumar et al., 2023), and texture. Hiss, strings that beat and
/// overtones that latents do not place flicker from bin to bin and from hop to hop. Value by value the nearest guess at
/// them is a smooth haze; texture asks for as much flicker as there is in every patch of the spectrum, wherever its
/// peaks lie.
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
