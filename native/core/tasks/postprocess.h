#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carillon {

/// Peak of normalised audio: -1 dB of full scale.
constexpr double kPeakAmplitude = 0.8912509381337456;  // 10^(-1/20)

/// Scales one item's audio [channels, samples] float32 in place to a peak of exactly kPeakAmplitude. Audio with a peak
/// below 1e-6 counts as silence and stays unchanged. Throws kNotFinite if a sample is not finite.
void normalize_peak(at::Tensor& audio);

/// Replaces in one item's `audio` [channels, samples] float32 the samples outside [begin, end) by those of `kept`,
/// which is at least as long. Cross-fades over `fade` samples outside either edge (soft_window). The level of `kept`
/// does not change; the part inside is attenuated if its peak exceeds full scale. Throws kNotFinite.
void keep_outside(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade);

}  // namespace carillon
