#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carillon {

/// Peak of normalised audio: -1 dB of full scale.
constexpr double kPeakAmplitude = 0.8912509381337456;  // 10^(-1/20)

/// Scales one item's audio [channels, samples] float32 in place to a peak of exactly kPeakAmplitude. Audio with a peak
/// below 1e-6 counts as silence and stays unchanged. Returns the factor. Throws kNotFinite if a sample is not finite.
double normalize_peak(at::Tensor& audio);

/// Replaces the samples outside [begin, end) of one item's `audio` [channels, samples] float32 with samples of `kept`,
/// which is at least as long. Cross-fades over `fade` samples outside each edge (soft_window). Samples from `kept` are
/// not attenuated. The samples inside are attenuated if their peak exceeds full scale. Throws kNotFinite.
void restore_outside_window(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade);

}  // namespace carillon
