#include "pretraining/train.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <sstream>

namespace carillon::pretraining {
namespace {

using Clock = std::chrono::steady_clock;

double minutes_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count() / 60;
}

std::string line(const std::string& stage, const char* kind, int64_t step, const Figures& figures) {
  std::ostringstream text;
  text << "{\"stage\": \"" << stage << "\", \"kind\": \"" << kind << "\", \"step\": " << step;
  for (const auto& [name, value] : figures) text << ", \"" << name << "\": " << value;
  text << "}";
  return text.str();
}

double learning_rate(const Options& options, int64_t step, double minutes) {
  const double warmup = static_cast<double>(step + 1) / std::max<double>(1, options.warmup_steps);
  const bool cools = options.cooldown_minutes > 0 && options.minutes > 0;
  const double cooldown = cools ? std::max(0.0, (options.minutes - minutes) / options.cooldown_minutes) : 1;
  return options.learning_rate * std::min({1.0, warmup, cooldown});
}

/// Means of figures over the steps between two lines.
class Means {
 public:
  void add(const std::string& name, double value) {
    auto& [sum, count] = sums_[name];
    sum += value;
    ++count;
  }
  Figures take() {
    Figures means;
    for (const auto& [name, entry] : sums_) means[name] = entry.first / static_cast<double>(entry.second);
    sums_.clear();
    return means;
  }

 private:
  std::map<std::string, std::pair<double, int64_t>> sums_;
};

}  // namespace

void train(const TrainingStage& stage, TrainState& state, const std::string& state_path, at::ScalarType dtype,
           const Options& options, const std::function<void(const std::string&)>& report) {
  const Checkpoint checkpoint = Checkpoint::of(state.parameters());
  const Weights weights = checkpoint.weights({state.parameters()->device(), dtype});
  const auto start = Clock::now();
  auto saved = start, reported = start;
  Means means;
  const auto measure = [&] {
    state.with_average([&] { report(line(options.stage, "held out", state.step(), stage.measure(weights))); });
  };
  const auto is_over = [&] {
    return state.step() >= options.steps || (options.minutes > 0 && minutes_since(start) >= options.minutes);
  };
  while (!is_over()) {
    Draw draw(options.seed, state.step());
    const Loss loss = stage.loss(weights, draw);
    loss.total.backward();
    const double rate = learning_rate(options, state.step(), minutes_since(start));
    const TrainState::Update update = state.update(rate, options.average_decay);
    means.add("loss", loss.total.item<double>());
    for (const auto& [name, value] : loss.parts) means.add(name, value.item<double>());
    means.add("gradientNorm", update.gradient_norm);
    means.add("skipped", update.applied ? 0 : 1);
    if (state.step() % std::max<int64_t>(1, options.log_steps) == 0) {
      Figures figures = means.take();
      figures["minutes"] = minutes_since(reported);
      reported = Clock::now();
      report(line(options.stage, "training", state.step(), figures));
    }
    if (options.measure_steps > 0 && state.step() % options.measure_steps == 0) measure();
    if (minutes_since(saved) >= options.save_minutes) {
      state.save(state_path);
      saved = Clock::now();
    }
  }
  state.save(state_path);
  measure();
}

}  // namespace carillon::pretraining
