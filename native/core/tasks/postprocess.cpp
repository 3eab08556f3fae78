#include "core/tasks/postprocess.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/diffusion/denoise.h"
#include "core/runtime/error.h"
#include "core/tasks/loudness.h"

namespace carillon {
namespace {

float peak_of(const at::Tensor& audio) {
  const auto [low, high] = at::aminmax(audio);
  const float peak = std::max(std::abs(low.item<float>()), std::abs(high.item<float>()));
  if (!std::isfinite(peak)) fail(ErrorCode::kNotFinite, "the decoded audio contains a value that is not finite");
  return peak;
}

}  // namespace

double normalize_peak(at::Tensor& audio) {
  constexpr float kSilence = 1e-6f;
  const float peak = peak_of(audio);
  if (peak < kSilence) return 1.0;
  const double gain = kPeakAmplitude / peak;
  audio.mul_(gain);
  return gain;
}

at::Tensor limit_peaks(const at::Tensor& audio) {
  constexpr double kKnee = 0.75, kRoom = 1.0 - kKnee;
  if (peak_of(audio) <= 1.0f) return audio;
  const at::Tensor size = audio.abs();
  const at::Tensor beyond = kRoom * at::tanh((size - kKnee).clamp_min(0.0) / kRoom);
  return at::sign(audio) * (size.clamp_max(kKnee) + beyond);
}

at::Tensor fit_part(const at::Tensor& decoded, int64_t begin, int64_t end, const std::optional<double>& level,
                    const std::optional<LoudnessRange>& suitable) {
  constexpr double kMostDecibels = 12.0, kTolerance = 0.1;
  constexpr int kRounds = 8;  // more than one only if the limiter takes loudness away
  const double scale = level.value_or(1.0);
  double decibels = 0.0;
  for (int round = 0;; ++round) {
    const at::Tensor scaled = decoded * (scale * amplitude_ratio(decibels));
    at::Tensor audio = level ? limit_peaks(scaled) : scaled;
    const std::optional<double> found = loudness_of(audio.slice(1, begin, end) / scale);
    if (!suitable || !found || round == kRounds) return audio;
    const double missing = std::clamp(*found, suitable->low, suitable->high) - *found;
    const double next = std::clamp(decibels + missing, -kMostDecibels, kMostDecibels);
    if (std::abs(next - decibels) < kTolerance) return audio;
    decibels = next;
  }
}

void restore_outside_window(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade) {
  const int64_t samples = audio.size(1);
  const int64_t first = std::max<int64_t>(0, begin - fade), last = std::min(samples, end + fade);
  at::Tensor joined = audio.slice(1, first, last);
  at::Tensor inside = at::zeros({1, last - first}, at::kBool);
  inside.slice(1, begin - first, end - first).fill_(true);
  const at::Tensor weight = soft_window(inside, fade);
  joined.copy_(weight * joined + (1.0 - weight) * kept.slice(1, first, last));
  audio.slice(1, 0, first).copy_(kept.slice(1, 0, first));
  audio.slice(1, last, samples).copy_(kept.slice(1, last, samples));
}

}  // namespace carillon
