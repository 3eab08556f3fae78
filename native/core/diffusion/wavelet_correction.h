#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Which bands of the state a wavelet correction moves; kPixel: all frequencies, without a wavelet.
enum class WaveletBand { kLow, kHigh, kDouble, kPixel };

/// Correction of a step in the wavelet domain (DCW): moves the state away from the data that the step predicted, the low
/// band of time by `time * low`, the high band by `(1 - time) * high`, of one level of the Haar wavelet.
struct WaveletCorrection {
  WaveletBand band;
  double low, high;

  /// state (after the step that began at `time`), data (which it predicted) [B, T, C] float32.
  at::Tensor apply(const at::Tensor& state, const at::Tensor& data, double time) const;
};

}  // namespace carillon
