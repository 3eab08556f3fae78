#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace carillon {

/// A captured sequence of GPU launches. A replay repeats all of them in one launch, on the same memory. To change an
/// input, write to its tensor between replays. Shapes never change.
class Graph {
 public:
  virtual ~Graph() = default;

  /// Captures the launches of `work` on `device` without running them. The functions that `work` calls must have run
  /// once before. They must not synchronize, and must not copy between host and device. Returns null if this libtorch
  /// or device does not support graphs, or there is not enough memory.
  static std::unique_ptr<Graph> capture(const at::Device& device, const std::function<void()>& work);

  /// Replays once on the calling thread's stream.
  virtual void replay() = 0;
};

}  // namespace carillon
