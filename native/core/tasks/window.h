#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/tasks/render_job.h"

namespace carillon {

/// A window on a source that grows where the window leaves it. All in samples.
struct WindowPlace {
  int64_t left, right;  // silence to put before and behind the source
  int64_t begin, end;   // the window within what comes of that

  friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
};

/// The window in samples, each time at the sample nearest to it; without a window all of the source.
WindowPlace place_window(const std::optional<Window>& window, int64_t samples, int64_t sample_rate);

/// Frames [begin, end) of `frames` that a window of samples covers: both ends rounded down, at least one frame.
struct FrameRange {
  int64_t begin, end;

  friend bool operator==(const FrameRange&, const FrameRange&) = default;
};
FrameRange frames_inside(const WindowPlace& place, int64_t frames, int64_t samples_per_frame);

/// [1, frames] bool, true inside the range.
at::Tensor window_mask(const FrameRange& range, int64_t frames, at::Device device);

}  // namespace carillon
