#include "core/tasks/postprocess.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/diffusion/denoise.h"
#include "core/runtime/error.h"

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

void restore_outside_window(at::Tensor& audio, const at::Tensor& kept, int64_t begin, int64_t end, int64_t fade) {
  const int64_t samples = audio.size(1);
  const int64_t first = std::max<int64_t>(0, begin - fade), last = std::min(samples, end + fade);
  at::Tensor joined = audio.slice(1, first, last);
  const double gain = 1.0 / std::max(1.0f, peak_of(joined));
  at::Tensor inside = at::zeros({1, last - first}, at::kBool);
  inside.slice(1, begin - first, end - first).fill_(true);
  const at::Tensor weight = soft_window(inside, fade);
  joined.copy_(weight * (gain * joined) + (1.0 - weight) * kept.slice(1, first, last));
  audio.slice(1, 0, first).copy_(kept.slice(1, 0, first));
  audio.slice(1, last, samples).copy_(kept.slice(1, last, samples));
}

}  // namespace carillon
