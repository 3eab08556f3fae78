#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "core/runtime/control.h"

namespace carillon {

/// A model that stays on its device, or one that is there only while somebody uses it.
/// What left is read again from its mapped file, which the system keeps in main memory while there is room.
/// Used on one thread at a time.
template <typename Model>
class Resident {
 public:
  using Load = std::function<Model(const Control&)>;

  /// Loads at once only what stays.
  Resident(Load load, bool stays, const Control& control) : load_(std::move(load)) {
    if (stays) staying_ = std::make_shared<Model>(load_(control));
  }

  /// The model, loaded if need be. One that does not stay leaves with its last holder.
  std::shared_ptr<const Model> acquire(const Control& control) const {
    if (staying_) return staying_;
    return std::make_shared<const Model>(load_(control));
  }

  /// The model that stays, to change it while nobody uses it; null where none stays.
  Model* staying() { return staying_.get(); }

 private:
  Load load_;
  std::shared_ptr<Model> staying_;
};

}  // namespace carillon
