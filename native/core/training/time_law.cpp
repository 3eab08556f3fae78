#include "core/training/time_law.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/diffusion/schedule.h"
#include "core/runtime/error.h"

namespace carillon {

bool is_turbo(const TrainingOptions& options, const DitConfig& model) {
  return model.is_turbo || options.model_name.find("turbo") != std::string::npos;
}

TimeLaw TimeLaw::discrete(double shift) {
  constexpr int kSteps = 8;
  constexpr double kTurboShift = 3.0;
  TimeLaw law;
  law.times_ = shifted_schedule(kSteps, shift == 0.0 ? kTurboShift : shift);
  return law;
}

TimeLaw TimeLaw::logit_normal(double mean, double deviation) {
  TimeLaw law;
  law.mean_ = mean;
  law.deviation_ = deviation;
  return law;
}

TimeLaw TimeLaw::choose(const TrainingOptions& options, const DitConfig& model) {
  const bool is_discrete = options.timestep_sampling == TimestepSampling::kAuto
                               ? is_turbo(options, model)
                               : options.timestep_sampling == TimestepSampling::kDiscrete;
  return is_discrete ? discrete(options.shift) : logit_normal(model.timestep_mu, model.timestep_sigma);
}

double TimeLaw::draw(at::Generator& generator) const {
  if (!times_.empty()) {
    const auto count = static_cast<int64_t>(times_.size());
    return times_[static_cast<size_t>(at::randint(count, {}, generator, at::kLong).item<int64_t>())];
  }
  const double larger = at::randn({2}, generator, at::kDouble).max().item<double>();
  return 1.0 / (1.0 + std::exp(-(mean_ + deviation_ * larger)));
}

}  // namespace carillon
