#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/control.h"

namespace carillon {

/// A model that either stays on its device or is loaded only while it is in use. Loading it again reads the weights
/// from the mapped file, which the system caches in main memory. Not thread-safe.
template <typename Model>
class Resident {
 public:
  using Load = std::function<Model(const Control&)>;

  /// If `stays`, loads the model immediately and keeps it.
  Resident(Load load, bool stays, const Control& control) : load_(std::move(load)) {
    if (stays) resident_ = std::make_shared<Model>(load_(control));
  }

  /// Returns the model. If it does not stay, every call loads a copy, which is unloaded when the last pointer to it is
  /// gone.
  std::shared_ptr<Model> acquire(const Control& control) const {
    return resident_ ? resident_ : std::make_shared<Model>(load_(control));
  }

 private:
  Load load_;
  std::shared_ptr<Model> resident_;
};

}  // namespace carillon
