#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

/// Peak of normalised audio: -1 dB of full scale.
constexpr double kPeakAmplitude = 0.8912509381337456;  // 10^(-1/20)

/// Scales one item's audio [channels, samples] float32 in place so that its peak is exactly kPeakAmplitude:
/// loud audio comes down, quiet audio comes up. Audio whose peak is below 1e-6 is silence and stays untouched.
/// Throws kNotFinite if a sample is not a number.
void normalize_peak(at::Tensor& audio);

}  // namespace carillon
