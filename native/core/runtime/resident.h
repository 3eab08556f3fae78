#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/control.h"

namespace carillon {

/// A model that stays on its device, or is loaded only while it is in use. Unloaded weights are read again from the
/// mapped file, which the system caches in main memory. Single-threaded.
template <typename Model>
class Resident {
 public:
  using Load = std::function<Model(const Control&)>;

  /// With `stays` the model is loaded immediately and kept.
  Resident(Load load, bool stays, const Control& control) : load_(std::move(load)) {
    if (stays) resident_ = std::make_shared<Model>(load_(control));
  }

  /// Returns the model. One that is not kept is loaded for each call, and unloaded with the last pointer to it.
  std::shared_ptr<Model> acquire(const Control& control) const {
    return resident_ ? resident_ : std::make_shared<Model>(load_(control));
  }

 private:
  Load load_;
  std::shared_ptr<Model> resident_;
};

}  // namespace carillon
