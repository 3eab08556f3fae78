#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace carillon {

/// Captured GPU work that is replayed in one launch on the same memory. Inputs are tensors written between replays;
/// shapes never change.
class Graph {
 public:
  virtual ~Graph() = default;

  /// Captures the launches of `work` on `device` without running them. The called functions must have run before, and
  /// must neither synchronize nor copy from or to the host. Null if this libtorch or device does not support graphs, or
  /// there is not enough memory.
  static std::unique_ptr<Graph> capture(const at::Device& device, const std::function<void()>& work);

  /// Replays once on the calling thread's stream.
  virtual void replay() = 0;
};

}  // namespace carillon
