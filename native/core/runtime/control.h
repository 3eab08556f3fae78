#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "core/runtime/choice.h"

namespace carillon {

/// Stage of a long call, for progress reports.
enum class Stage { kLoad, kConditions, kDenoise, kDecode, kPrefill, kMetadata, kCodes, kText };

template <>
inline constexpr Choices<Stage> kChoices<Stage> = {{"load", Stage::kLoad},       {"conditions", Stage::kConditions},
                                                   {"denoise", Stage::kDenoise}, {"decode", Stage::kDecode},
                                                   {"prefill", Stage::kPrefill}, {"metadata", Stage::kMetadata},
                                                   {"codes", Stage::kCodes},     {"text", Stage::kText}};

struct Progress {
  Stage stage;
  int64_t done;
  int64_t total;  // 0: not known
};

/// Cancellation and progress of a long call, which uses its Control at every token, step and tile. The `cancelled` flag
/// must outlive the call. A default Control neither cancels nor reports.
class Control {
 public:
  Control() = default;
  Control(const std::atomic<bool>* cancelled, std::function<void(const Progress&)> on_progress)
      : cancelled_(cancelled), on_progress_(std::move(on_progress)) {}

  bool is_cancelled() const { return cancelled_ && cancelled_->load(std::memory_order_relaxed); }
  /// Throws Error(kCancelled) if the caller has cancelled.
  void check() const;
  /// Calls check(), then reports progress. Called on the thread that does the work.
  void report(Stage stage, int64_t done, int64_t total) const;
  /// Returns a control for one of the `count` equal parts of a stage. It reports the progress of the part as progress
  /// of the whole stage. This object must outlive the returned one.
  Control part(Stage stage, int64_t index, int64_t count) const;

 private:
  const std::atomic<bool>* cancelled_ = nullptr;
  std::function<void(const Progress&)> on_progress_;
};

}  // namespace carillon
