#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace carillon {

/// Work that a GPU was asked for once and does again in one launch, on the same memory: its inputs are tensors that are
/// written between replays, and its shapes never change.
class Graph {
 public:
  virtual ~Graph() = default;

  /// Notes what `work` launches on `device`; none of it is done. What it calls must have run before, and must neither
  /// wait for the device nor copy from or to the host. Null where this libtorch or device captures no graphs, or the
  /// memory of one is not there.
  static std::unique_ptr<Graph> capture(const at::Device& device, const std::function<void()>& work);

  /// Does it once, on the calling thread's stream.
  virtual void replay() = 0;
};

}  // namespace carillon
