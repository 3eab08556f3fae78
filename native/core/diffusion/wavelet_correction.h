#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Bands of the state that a wavelet correction changes. kDouble: both bands. kPixel: all frequencies, without a
/// wavelet transform.
enum class WaveletBand { kLow, kHigh, kDouble, kPixel };

/// Correction of a step in the wavelet domain (DCW): moves the state away from the data that the step predicted. In a
/// one-level Haar transform over time, the difference between state and data is scaled by `time * low` in the low band
/// and by `(1 - time) * high` in the high band.
struct WaveletCorrection {
  WaveletBand band;
  double low, high;

  /// Corrects `state`, the result of the step from `time`. `data` is what this step predicted; both are [B, T, C]
  /// float32.
  at::Tensor apply(const at::Tensor& state, const at::Tensor& data, double time) const;
};

}  // namespace carillon
