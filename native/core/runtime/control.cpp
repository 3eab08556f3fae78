#include "core/runtime/control.h"

#include "core/runtime/error.h"

namespace carillon {

void Control::check() const {
  if (is_cancelled()) fail(ErrorCode::kCancelled, "the call was cancelled");
}

void Control::report(Stage stage, int64_t done, int64_t total) const {
  check();
  if (on_progress_) on_progress_({stage, done, total});
}

Control Control::part(Stage stage, int64_t index, int64_t count) const {
  return Control(nullptr, [this, stage, index, count](const Progress& progress) {
    const auto [of, done, total] = progress;
    if (of == stage) {
      report(of, index * total + done, count * total);
    } else {
      report(of, done, total);
    }
  });
}

}  // namespace carillon
