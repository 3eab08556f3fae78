#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace carillon {

/// A captured sequence of GPU launches. A replay runs the whole sequence as one launch, with the same shapes on the
/// same memory. To change an input, write to its tensor before the replay.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;

  /// Captures the launches of `work` on `device` without running them. `work` must have run once before. It must not
  /// synchronize, and must not copy between host and device. Returns null if libtorch or the device does not support
  /// graphs, or if memory is short.
  static std::unique_ptr<LaunchGraph> capture(const at::Device& device, const std::function<void()>& work);

  /// Runs the captured launches once, on the calling thread's stream.
  virtual void replay() = 0;
};

}  // namespace carillon
