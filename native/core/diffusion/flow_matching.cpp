#include "core/diffusion/flow_matching.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/runtime/error.h"

namespace carillon {

namespace {

constexpr int kMaxSteps = 1000;
constexpr int kTurboSteps = 8;
constexpr double kTurboShift = 3.0;
constexpr double kTurboTableShifts[] = {1.0, 2.0, 3.0};
constexpr size_t kMaxTurboTimesteps = 20;

std::vector<double> without_trailing_zeros(std::vector<double> times) {
  while (!times.empty() && times.back() == 0.0) times.pop_back();
  return times;
}

/// Times that appear in any turbo table, in descending order and without duplicates.
const std::vector<double>& turbo_times() {
  static const std::vector<double> times = [] {
    std::vector<double> all;
    for (const double shift : kTurboTableShifts) {
      const Schedule table = shifted_schedule(kTurboSteps, shift);
      all.insert(all.end(), table.begin(), table.end());
    }
    std::sort(all.begin(), all.end(), std::greater<>());
    const auto same = [](double a, double b) { return std::abs(a - b) < 1e-9; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
  }();
  return times;
}

}  // namespace

double next_time(const Schedule& schedule, size_t step) {
  return step + 1 < schedule.size() ? schedule[step + 1] : 0.0;
}

Schedule shifted_schedule(int steps, double shift) {
  require(steps >= 1 && steps <= kMaxSteps,
          "inference steps must be 1 to " + std::to_string(kMaxSteps) + ", not " + std::to_string(steps));
  if (!(shift > 0.0) || !std::isfinite(shift)) {
    fail(ErrorCode::kBadArgument, "shift must be a positive number, not " + std::to_string(shift));
  }
  Schedule schedule(static_cast<size_t>(steps));
  for (int step = 0; step < steps; ++step) {
    const double u = 1.0 - static_cast<double>(step) / steps;
    schedule[step] = shift * u / (1.0 + (shift - 1.0) * u);
  }
  return schedule;
}

Schedule turbo_schedule(int steps) { return shifted_schedule(steps, kTurboShift); }

Schedule custom_schedule(const std::vector<double>& timesteps) {
  Schedule schedule = without_trailing_zeros(timesteps);
  require(!schedule.empty(), "timesteps must hold at least one value above 0");
  double previous = std::nextafter(1.0, 2.0);
  for (const double time : schedule) {
    require(time > 0.0 && time < previous,
            "timesteps must descend strictly from at most 1 to 0; " + std::to_string(time) + " breaks this");
    previous = time;
  }
  return schedule;
}

Schedule snap_to_turbo_times(const std::vector<double>& timesteps) {
  Schedule schedule = without_trailing_zeros(timesteps);
  if (schedule.size() > kMaxTurboTimesteps) schedule.resize(kMaxTurboTimesteps);
  for (double& time : schedule) time = turbo_times()[nearest_step(turbo_times(), time)];
  return schedule;
}

size_t nearest_step(const Schedule& schedule, double time) {
  const auto nearer = [&](double a, double b) { return std::abs(a - time) < std::abs(b - time); };
  return static_cast<size_t>(std::min_element(schedule.begin(), schedule.end(), nearer) - schedule.begin());
}

at::Tensor add_noise(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times) {
  const at::Tensor time = times.reshape({-1, 1, 1});
  return time * noise + (1.0 - time) * data;
}

at::Tensor run_layer(const LayerFunction& layer, const at::Tensor& x) { return layer(x); }

at::Tensor flow_matching_loss(const Dit& dit, const FlowMatchingBatch& batch, const LayerRunner& run) {
  const at::Tensor state = add_noise(batch.data, batch.noise, batch.times).to(batch.context.scalar_type());
  const at::Tensor velocity = dit.velocity_by_layer(state, dit.embed_context(batch.context), dit.modulate(batch.times),
                                                    batch.encoder_states, batch.encoder_mask, run);
  return at::mse_loss(velocity.to(at::kFloat), (batch.noise - batch.data).to(at::kFloat));
}

}  // namespace carillon
