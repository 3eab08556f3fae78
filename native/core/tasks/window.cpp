#include "core/tasks/window.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace carillon {

WindowPlace place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate) {
  if (!window) return {.left = 0, .right = 0, .begin = 0, .end = samples};
  const auto to_samples = [&](double seconds) {
    constexpr double kBeyondAnySong = 1e15;
    return static_cast<int64_t>(
        std::llround(std::clamp(seconds * static_cast<double>(sample_rate), -kBeyondAnySong, kBeyondAnySong)));
  };
  const int64_t begin = to_samples(window->start_seconds), end = to_samples(window->end_seconds);
  const int64_t left = std::max<int64_t>(0, -begin), right = std::max<int64_t>(0, end - samples);
  return {.left = left, .right = right, .begin = begin + left, .end = end + left};
}

FrameRange frames_inside(const WindowPlace& place, int64_t frames, int64_t samples_per_frame) {
  const int64_t begin = std::clamp<int64_t>(place.begin / samples_per_frame, 0, frames - 1);
  return {begin, std::clamp<int64_t>(place.end / samples_per_frame, begin + 1, frames)};
}

at::Tensor window_mask(const FrameRange& range, int64_t frames, at::Device device) {
  at::Tensor mask = at::zeros({1, frames}, at::TensorOptions(device).dtype(at::kBool));
  mask.narrow(1, range.begin, range.end - range.begin).fill_(true);
  return mask;
}

}  // namespace carillon
