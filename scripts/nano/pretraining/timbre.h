#pragma once
#include <ATen/core/Tensor.h>

#include "core/checkpoint/config.h"

namespace carillon::pretraining {

/// Log-mel spectra of both channels' mean, 80 bands from 250 Hz to 16 kHz, four to a latent frame.
class LogMel {
 public:
  static constexpr int64_t kBands = 80, kPerFrame = 4, kRows = kBands * kPerFrame;

  LogMel(const VaeConfig& config, at::Device device);

  /// middle [B, frames * hop] -> log amplitudes [B, kRows, frames].
  at::Tensor operator()(const at::Tensor& middle) const;

 private:
  int64_t hop_;
  at::Tensor hann_, filters_;  // [window], [kBands, window / 2 + 1]
};

/// What sounds above the waves, and when within a frame: a latent frame's log-mel spectra by the principal components
/// of the data set's. Those that vary most are the largest, but only by the root of how much more they vary: the first
/// has deviation 3 and the last about 1.
class Timbre {
 public:
  /// From log amplitudes [samples, LogMel::kRows] of the data set.
  static Timbre learn(const at::Tensor& spectra, int64_t channels);
  Timbre(at::Tensor mean, at::Tensor components) : mean_(std::move(mean)), components_(std::move(components)) {}

  /// Log amplitudes [B, LogMel::kRows, frames] -> [B, channels, frames].
  at::Tensor operator()(const at::Tensor& spectra) const;

  const at::Tensor& mean() const { return mean_; }
  const at::Tensor& components() const { return components_; }

 private:
  at::Tensor mean_, components_;  // [LogMel::kRows], [channels, LogMel::kRows]
};

}  // namespace carillon::pretraining
