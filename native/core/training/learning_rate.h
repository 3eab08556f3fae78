#pragma once
#include <cstdint>

namespace carillon {

/// A rise from a tenth over the warm-up, then half a cosine down to a hundredth (reference training.md 6.2).
struct LearningRate {
  double peak;
  int64_t warmup_steps;
  int64_t decay_steps;

  /// For a run of `total_steps`: a tenth of it is warm-up, at most 100 steps.
  static LearningRate plan(double peak, int64_t total_steps);

  /// Of optimiser step `step`, 0 for the first. After the planned steps it begins again at the peak.
  double at(int64_t step) const;
};

}  // namespace carillon
