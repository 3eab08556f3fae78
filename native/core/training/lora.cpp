#include "core/training/lora.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/nn/linear.h"

namespace carillon {
namespace {

/// Elements of x are zero with probability `rate`; the others grow, so that the mean stays.
at::Tensor dropped(const at::Tensor& x, double rate, at::Generator generator) {
  if (rate == 0.0 || !generator.defined()) return x;
  if (rate == 1.0) return at::zeros_like(x);
  return x * at::empty_like(x).bernoulli_(1.0 - rate, generator).div_(1.0 - rate);
}

}  // namespace

TrainedLora::TrainedLora(const LoraDesign& design, const at::Tensor& weight, at::Generator& generator)
    : a(uniform_parameter({design.rank, weight.size(1)}, 1.0 / std::sqrt(static_cast<double>(weight.size(1))),
                          generator, weight.device())),
      b(constant_parameter({weight.size(0), design.rank}, 0.0, weight.device())),
      scale(design.alpha / static_cast<double>(design.rank)),
      dropout_rate(design.dropout) {}

at::Tensor TrainedLora::apply(const at::Tensor& x, const at::Tensor&, const at::Generator& dropout) const {
  const at::Tensor inner = nn::linear(dropped(x, dropout_rate, dropout), a.to(x.scalar_type()), {});
  return nn::linear(inner, b.to(x.scalar_type()), {}) * scale;
}

}  // namespace carillon
