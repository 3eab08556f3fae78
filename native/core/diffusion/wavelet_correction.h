#pragma once
#include <ATen/core/Tensor.h>

#include "core/runtime/choice.h"

namespace carillon {

/// Frequency bands of the state that a wavelet correction changes. kDouble: low and high. kPixel: all frequencies,
/// without a wavelet transform.
enum class WaveletBand { kLow, kHigh, kDouble, kPixel };

template <>
inline constexpr Choices<WaveletBand> kChoices<WaveletBand> = {{"low", WaveletBand::kLow},
                                                               {"high", WaveletBand::kHigh},
                                                               {"double", WaveletBand::kDouble},
                                                               {"pix", WaveletBand::kPixel}};

/// Correction of a step in the wavelet domain (DCW). It moves the state away from the data that the step predicted. The
/// difference between state and data is split by a one-level Haar transform over time. It is scaled by `time * low` in
/// the low band and by `(1 - time) * high` in the high band.
struct WaveletCorrection {
  WaveletBand band = WaveletBand::kDouble;
  double low = 0.05, high = 0.02;

  /// Corrects `state`, the result of the step that started at `time`. `data` is the data that this step predicted. Both
  /// are [B, T, C] float32.
  at::Tensor apply(const at::Tensor& state, const at::Tensor& data, double time) const;
};

}  // namespace carillon
