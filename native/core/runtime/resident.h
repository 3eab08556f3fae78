#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/control.h"

namespace carillon {

/// A model that stays on its device, or is loaded only while it is in use. Reloading reads the mapped file of weights,
/// which the system caches in main memory. Not thread-safe.
template <typename Model>
class ResidentModel {
 public:
  using Load = std::function<Model(const Control&)>;

  /// If `stays` is true, loads the model now and keeps the model loaded.
  ResidentModel(Load load, bool stays, const Control& control) : load_(std::move(load)) {
    if (stays) resident_ = std::make_shared<Model>(load_(control));
  }

  /// Returns the model. If the model does not stay, every call loads a copy, which lives as long as the pointer.
  std::shared_ptr<Model> acquire(const Control& control) const {
    return resident_ ? resident_ : std::make_shared<Model>(load_(control));
  }

 private:
  Load load_;
  std::shared_ptr<Model> resident_;
};

}  // namespace carillon
