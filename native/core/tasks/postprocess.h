#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carillon {

/// Peak of normalised audio: -1 dB of full scale.
constexpr double kPeakAmplitude = 0.8912509381337456;  // 10^(-1/20)

/// Scales one item's audio [channels, samples] float32 in place so that its peak is exactly kPeakAmplitude:
/// loud audio comes down, quiet audio comes up. Audio whose peak is below 1e-6 is silence and stays untouched.
/// Throws kNotFinite if a sample is not a number.
void normalize_peak(at::Tensor& audio);

/// Replaces what lies outside samples [begin, end) of one item's audio [channels, samples] float32, in place, by
/// `kept` [channels, at least samples], fading over `fade` samples outside either edge (soft_window). What was kept
/// keeps its level: only the new part comes down, where its peak is above full scale. Throws kNotFinite.
void keep_outside(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade);

}  // namespace carillon
