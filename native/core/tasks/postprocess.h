#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/checkpoint/config.h"

namespace carillon {

/// Peak of normalised audio: -1 dB of full scale.
constexpr double kPeakAmplitude = 0.8912509381337456;  // 10^(-1/20)

/// Scales one item's audio [channels, samples] float32 in place to a peak of exactly kPeakAmplitude. Audio with a peak
/// below 1e-6 counts as silence and stays unchanged. Returns the factor. Throws kNotFinite if a sample is not finite.
double normalize_peak(at::Tensor& audio);

/// Limits audio with a peak above full scale: bends samples above 0.75 towards 1, which they do not exceed. Unlike
/// attenuation, this reaches the loudness of a clipped song. Returns other audio as it is. Throws kNotFinite.
at::Tensor limit_peaks(const at::Tensor& audio);

/// Returns the `decoded` audio of one item, [channels, samples] float32, multiplied by `level` and by a gain of at most
/// 12 dB that makes the loudness of samples [begin, end) `suitable`. Peaks above full scale are limited; the gain makes
/// up for the loudness that this costs. `suitable` is a loudness at a level of 1. If it is nullopt, or the part is
/// silent, there is no gain. A `level` of nullopt means 1 without a limit, for a song that is normalised afterwards.
/// Throws kNotFinite, but not without a limit.
at::Tensor fit_part(const at::Tensor& decoded, int64_t begin, int64_t end, const std::optional<double>& level,
                    const std::optional<LoudnessRange>& suitable);

/// Replaces the samples outside [begin, end) of one item's `audio` [channels, samples] float32 with samples of `kept`,
/// which is at least as long. Cross-fades over `fade` samples outside each edge (soft_window).
void restore_outside_window(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade);

}  // namespace carillon
