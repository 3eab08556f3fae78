#include "pretraining/train_state.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"
#include "pretraining/muon.h"

namespace carillon::pretraining {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.99, kEpsilon = 1e-8, kWeightDecay = 0.01, kLargestNorm = 1.0;
constexpr double kMomentum = 0.95;  // of Muon, with Nesterov's look ahead
constexpr const char* kStep = "step";
const std::string kWeight = "weight/", kAverage = "average/", kFirst = "first_moment/", kSecond = "second_moment/";

}  // namespace

TrainState::Companions& TrainState::companions(const std::string& name) {
  Companions& found = companions_[name];
  if (!found.average.defined()) {
    const at::Tensor& leaf = parameters_->leaves().at(name);
    found = {leaf.detach().clone(), at::zeros_like(leaf), at::zeros_like(leaf)};
  }
  return found;
}

void TrainState::step_by_adam(const std::vector<Learning>& learning, double learning_rate) {
  std::vector<at::Tensor> weights, gradients, first, second;
  for (const auto& [weight, gradient, companions] : learning) {
    weights.push_back(weight);
    gradients.push_back(gradient);
    first.push_back(companions->first_moment);
    second.push_back(companions->second_moment);
  }
  if (weights.empty()) return;
  at::_foreach_lerp_(first, gradients, 1 - kFirstDecay);
  at::_foreach_mul_(second, kSecondDecay);
  at::_foreach_addcmul_(second, gradients, gradients, 1 - kSecondDecay);
  const double steps = static_cast<double>(step_);
  std::vector<at::Tensor> scale = at::_foreach_sqrt(second);
  at::_foreach_div_(scale, std::sqrt(1 - std::pow(kSecondDecay, steps)));
  at::_foreach_add_(scale, kEpsilon);
  at::_foreach_addcdiv_(weights, first, scale, -learning_rate / (1 - std::pow(kFirstDecay, steps)));
}

void TrainState::step_by_muon(const std::vector<Learning>& learning, double learning_rate) {
  for (const auto& [weight, gradient, companions] : learning) {
    companions->first_moment.lerp_(gradient, 1 - kMomentum);
    weight.sub_(muon_step(at::lerp(gradient, companions->first_moment, kMomentum), product_dtype_), learning_rate);
  }
}

TrainState::Update TrainState::update(double learning_rate, double average_decay) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> weights, gradients, averages;
  std::vector<Learning> by_adam, by_muon;
  for (const auto& [name, leaf] : parameters_->leaves()) {
    if (!leaf.grad().defined()) continue;
    Companions& found = companions(name);
    (learns_by_muon(name, leaf) ? by_muon : by_adam).push_back({leaf.detach(), leaf.grad(), &found});
    weights.push_back(leaf.detach());
    gradients.push_back(leaf.grad());
    averages.push_back(found.average);
  }
  if (weights.empty()) fail(ErrorCode::kInternal, "the loss reaches no weight");
  ++step_;
  const double norm = at::stack(at::_foreach_norm(gradients)).norm().item<double>();
  const bool applied = std::isfinite(norm);
  if (applied) {
    if (norm > kLargestNorm) at::_foreach_mul_(gradients, kLargestNorm / norm);
    at::_foreach_mul_(weights, 1 - learning_rate * kWeightDecay);
    step_by_adam(by_adam, learning_rate);
    step_by_muon(by_muon, learning_rate);
    const double decay = std::min(average_decay, static_cast<double>(step_) / (static_cast<double>(step_) + 10.0));
    at::_foreach_lerp_(averages, weights, 1 - decay);
  }
  for (const auto& [name, leaf] : parameters_->leaves()) leaf.mutable_grad() = at::Tensor();
  return {norm, applied};
}

void TrainState::with_average(const std::function<void()>& body) {
  const at::NoGradGuard no_grad;
  const auto swap = [&] {
    for (const auto& [name, leaf] : parameters_->leaves()) {
      at::Tensor& average = companions(name).average;
      const at::Tensor trained = leaf.detach().clone();
      leaf.detach().copy_(average);
      average.copy_(trained);
    }
  };
  swap();
  body();
  swap();
}

void TrainState::save(const std::string& path) const {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, leaf] : parameters_->leaves()) {
    tensors[kWeight + name] = leaf.detach();
    const auto found = companions_.find(name);
    if (found == companions_.end()) continue;
    tensors[kAverage + name] = found->second.average;
    tensors[kFirst + name] = found->second.first_moment;
    tensors[kSecond + name] = found->second.second_moment;
  }
  save_safetensors(path, tensors, {{kStep, std::to_string(step_)}});
}

void TrainState::load(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const auto step = file.metadata().find(kStep);
  if (step == file.metadata().end()) fail(ErrorCode::kBadCheckpoint, path + ": this is no state of a training stage");
  step_ = std::stoll(step->second);
  const auto copy = [&](const std::string& name) {
    return file.tensor(name).to(parameters_->device(), at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  };
  for (const std::string& stored : file.names()) {
    if (stored.rfind(kWeight, 0) != 0) continue;
    const std::string name = stored.substr(kWeight.size());
    parameters_->set(name, file.tensor(stored));
    if (file.has(kAverage + name)) {
      companions_[name] = {copy(kAverage + name), copy(kFirst + name), copy(kSecond + name)};
    }
  }
}

std::map<std::string, at::Tensor> TrainState::read_average(const std::string& path) {
  const std::filesystem::path state = path;
  if (!std::filesystem::exists(state)) {
    fail(ErrorCode::kBadArgument, path + " is missing: run stage '" + state.stem().string() + "' first");
  }
  const Safetensors file = Safetensors::open(path);
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& stored : file.names()) {
    if (stored.rfind(kWeight, 0) != 0) continue;
    const std::string name = stored.substr(kWeight.size());
    tensors[name] = file.tensor(file.has(kAverage + name) ? kAverage + name : stored);
  }
  return tensors;
}

}  // namespace carillon::pretraining
