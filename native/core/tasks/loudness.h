#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/checkpoint/config.h"

namespace carillon {

/// Integrated loudness in LUFS (ITU-R BS.1770-4) of audio [channels, samples], float32 on the CPU at 48 kHz. Parts
/// below -60 LUFS count as silence; the standard's -70 would include the noise of many microphones. nullopt: all of it
/// is silence.
std::optional<double> loudness_of(const at::Tensor& audio);

/// loudness_of the audio beside [begin, end): up to 10 seconds on each side.
std::optional<double> loudness_beside(const at::Tensor& audio, int64_t begin, int64_t end);

/// Factor from the middle of `music` to the level of the audio. 1 for silence, and for audio whose loudness is in the
/// range.
double level_to_music(const at::Tensor& audio, const LoudnessRange& music);

/// Factor of an amplitude. Uses exp, because the pow of newer C libraries is missing in older ones.
double amplitude_ratio(double decibels);

/// Loudness in LUFS that suits a new part: at most 1 dB from `neighbours`, the loudness of the music beside it, or
/// between them and `original`, the loudness of what it replaces. Silence (nullopt) does not count. nullopt: both are
/// silent.
std::optional<LoudnessRange> suitable_loudness(const std::optional<double>& neighbours,
                                               const std::optional<double>& original);

/// Audio divided by its level_to_music, clipped to -1 .. 1 as recordings are. A level of 1 returns the audio itself.
at::Tensor at_music_level(const at::Tensor& audio, double level);

}  // namespace carillon
