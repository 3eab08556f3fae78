#include "core/training/lokr.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "core/adapters/delta.h"
#include "core/nn/linear.h"

namespace carillon {
namespace {

double bound_of(int64_t fan_in) { return 1.0 / std::sqrt(static_cast<double>(fan_in)); }

}  // namespace

at::Tensor TrainedLokr::Factor::value() const { return whole.defined() ? whole : at::matmul(a, b); }

TrainedLokr::TrainedLokr(const LokrDesign& design, const at::Tensor& weight, at::Generator& generator)
    : shape(LokrShape::of(weight.size(0), weight.size(1), design.dimension, design.factor, design.decompose_both)),
      alpha(shape.effective_alpha(design.alpha, design.dimension)),
      scale(alpha / static_cast<double>(design.dimension)) {
  const at::Device device = weight.device();
  const int64_t rank = design.dimension;
  const auto factor = [&](int64_t rows, int64_t columns, bool is_whole, bool begins_as_zero) -> Factor {
    const auto last = [&](at::IntArrayRef sizes) {
      return begins_as_zero ? constant_parameter(sizes, 0.0, device)
                            : uniform_parameter(sizes, bound_of(columns), generator, device);
    };
    if (is_whole) return {last({rows, columns}), {}, {}};
    return {{}, uniform_parameter({rows, rank}, bound_of(rank), generator, device), last({rank, columns})};
  };
  w1 = factor(shape.out.small, shape.in.small, shape.w1_is_whole, false);
  w2 = factor(shape.out.large, shape.in.large, shape.w2_is_whole, !design.use_scalar);
  if (design.use_scalar) scalar = constant_parameter({}, 0.0, device);
  if (design.weight_decompose) {
    const c10::NoGradGuard no_grad;
    dora_scale = row_norms(weight.to(at::kFloat)).requires_grad_();
  }
}

NamedTensors TrainedLokr::parameters() const {
  const NamedTensors all = {{"lokr_w1", w1.whole}, {"lokr_w1_a", w1.a},       {"lokr_w1_b", w1.b},
                            {"lokr_w2", w2.whole}, {"lokr_w2_a", w2.a},       {"lokr_w2_b", w2.b},
                            {"scalar", scalar},    {"dora_scale", dora_scale}};
  NamedTensors trained;
  for (const auto& [name, tensor] : all) {
    if (tensor.defined()) trained.emplace_back(name, tensor);
  }
  return trained;
}

at::Tensor TrainedLokr::scaled_w1() const { return scalar.defined() ? w1.value() * scalar : w1.value(); }

at::Tensor TrainedLokr::apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator&) const {
  if (!dora_scale.defined()) return apply_factors(x);
  const at::Tensor base = weight.to(dora_scale.scalar_type());
  const at::Tensor changed = base + lokr_delta(scaled_w1(), w2.value(), scale);
  // The difference is small beside the weight: rounding to the type of x comes after it is taken.
  const at::Tensor difference = dora_weight(changed, dora_scale, kLokrNormEpsilon) - base;
  return nn::linear(x, difference.to(x.scalar_type()), {});
}

/// x kron(w1, w2)^T without the product: x as [b, d] for each position is multiplied by w2 from one side and by w1
/// from the other.
at::Tensor TrainedLokr::apply_factors(const at::Tensor& x) const {
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t width = sizes.back();
  sizes.back() = shape.in.small;
  sizes.push_back(width / shape.in.small);
  const auto typed = [&](const at::Tensor& matrix) { return matrix.to(x.scalar_type()); };
  at::Tensor rows = x.reshape(sizes);
  if (w2.whole.defined()) {
    rows = nn::linear(rows, typed(w2.whole), {});
  } else {
    rows = nn::linear(nn::linear(rows, typed(w2.b), {}), typed(w2.a), {});
  }
  return at::matmul(typed(scaled_w1() * scale), rows).flatten(-2);
}

}  // namespace carillon
