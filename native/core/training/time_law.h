#pragma once
#include <ATen/core/Generator.h>

#include <vector>

#include "core/checkpoint/config.h"
#include "core/training/training.h"

namespace carillon {

/// Whether a model was distilled to the eight times of the turbo schedule: its config says so, or its name does.
bool is_turbo(const TrainingOptions& options, const DitConfig& model);

/// The law by which the flow times of training are drawn (reference training.md 3.2).
class TimeLaw {
 public:
  /// Each of the times of an eight-step schedule alike; shift 0 means 3, that of turbo models.
  static TimeLaw discrete(double shift);
  /// The larger of two numbers sigmoid(mean + deviation * normal): the model's own training drew both ends of an
  /// interval and used the upper.
  static TimeLaw logit_normal(double mean, double deviation);
  /// What the options choose for this model. Throws kBadArgument for a shift that is not one.
  static TimeLaw choose(const TrainingOptions& options, const DitConfig& model);

  double draw(at::Generator& generator) const;

 private:
  std::vector<double> times_;  // empty: logit-normal
  double mean_ = 0, deviation_ = 0;
};

}  // namespace carillon
