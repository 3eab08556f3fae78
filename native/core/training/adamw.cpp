#include "core/training/adamw.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

namespace carillon {
namespace {

/// Of each gradient, as float64 scalars.
std::vector<at::Tensor> squared_norms(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> squares;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) squares.push_back(parameter.grad().square().sum(at::kDouble));
  }
  return squares;
}

}  // namespace

AdamW::AdamW(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  for (const auto& parameter : parameters_) {
    means_.push_back(at::zeros_like(parameter.detach()));
    squares_.push_back(at::zeros_like(parameter.detach()));
  }
}

void AdamW::step(int64_t step, double learning_rate) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8, kWeightDecay = 0.01;
  const c10::NoGradGuard no_grad;
  const double count = static_cast<double>(step + 1);
  const double mean_correction = 1.0 - std::pow(kBeta1, count), square_correction = 1.0 - std::pow(kBeta2, count);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor parameter = parameters_[i], mean = means_[i], square = squares_[i];
    const at::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    mean.mul_(kBeta1).add_(gradient, 1.0 - kBeta1);
    square.mul_(kBeta2).addcmul_(gradient, gradient, 1.0 - kBeta2);
    const at::Tensor scale = (square / square_correction).sqrt_().add_(kEpsilon);
    parameter.mul_(1.0 - learning_rate * kWeightDecay).addcdiv_(mean, scale, -learning_rate / mean_correction);
  }
}

double gradient_norm(const std::vector<at::Tensor>& parameters) {
  const auto squares = squared_norms(parameters);
  return squares.empty() ? 0.0 : at::stack(squares).sum().sqrt().item<double>();
}

int64_t count_not_finite(const std::vector<at::Tensor>& parameters) {
  const auto squares = squared_norms(parameters);
  return squares.empty() ? 0 : at::stack(squares).isfinite().logical_not().sum().item<int64_t>();
}

void clip_gradients(const std::vector<at::Tensor>& parameters, double norm, double limit) {
  constexpr double kEpsilon = 1e-6;
  const double scale = std::min(1.0, limit / (norm + kEpsilon));
  if (scale == 1.0) return;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) parameter.grad().mul_(scale);
  }
}

void clear_gradients(const std::vector<at::Tensor>& parameters) {
  for (auto parameter : parameters) parameter.mutable_grad() = at::Tensor();
}

}  // namespace carillon
