#include "core/training/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace carillon {

LearningRate LearningRate::plan(double peak, int64_t total_steps) {
  constexpr int64_t kMostWarmupSteps = 100, kWarmupShare = 10;
  const int64_t warmup = std::clamp<int64_t>(total_steps / kWarmupShare, 1, kMostWarmupSteps);
  return {peak, warmup, std::max<int64_t>(1, total_steps - warmup)};
}

double LearningRate::at(int64_t step) const {
  constexpr double kFirst = 0.1, kLast = 0.01;
  if (step < warmup_steps) {
    return peak * (kFirst + (1.0 - kFirst) * static_cast<double>(step) / static_cast<double>(warmup_steps));
  }
  const double done = static_cast<double>((step - warmup_steps) % decay_steps) / static_cast<double>(decay_steps);
  return peak * (kLast + (1.0 - kLast) * (1.0 + std::cos(std::numbers::pi * done)) / 2.0);
}

}  // namespace carillon
