#include "core/tasks/postprocess.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/runtime/error.h"

namespace carillon {

void normalize_peak(at::Tensor& audio) {
  constexpr float kSilence = 1e-6f;
  const auto [low, high] = at::aminmax(audio);
  const float peak = std::max(std::abs(low.item<float>()), std::abs(high.item<float>()));
  if (!std::isfinite(peak)) fail(ErrorCode::kNotFinite, "the decoded audio holds a value that is not a number");
  if (peak >= kSilence) audio.mul_(kPeakAmplitude / peak);
}

}  // namespace carillon
