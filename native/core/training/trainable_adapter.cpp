#include "core/training/trainable_adapter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <string_view>

#include "core/runtime/error.h"
#include "core/training/random_draws.h"
#include "kernels/linear.h"

namespace carillon {

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

namespace {

/// A parameter drawn uniformly from -bound .. bound.
at::Tensor uniform_parameter(at::IntArrayRef shape, double bound, at::Generator& generator, at::Device device) {
  at::Tensor values = at::empty(shape, at::kFloat).uniform_(-bound, bound, generator);
  return values.to(device).requires_grad_();
}

at::Tensor constant_parameter(at::IntArrayRef shape, double value, at::Device device) {
  return at::full(shape, value, at::device(device).dtype(at::kFloat)).requires_grad_();
}

double bound_of(int64_t fan_in) { return 1.0 / std::sqrt(static_cast<double>(fan_in)); }

/// Dropout: zeroes elements of x with probability `rate` and scales the others to keep the mean.
at::Tensor dropped(const at::Tensor& x, double rate, at::Generator generator) {
  if (rate == 0.0 || !generator.defined()) return x;
  if (rate == 1.0) return at::zeros_like(x);
  return x * at::empty_like(x).bernoulli_(1.0 - rate, generator).div_(1.0 - rate);
}

}  // namespace

TrainedLora::TrainedLora(const LoraDesign& design, const at::Tensor& weight, at::Generator& generator)
    : a(uniform_parameter({design.rank, weight.size(1)}, bound_of(weight.size(1)), generator, weight.device())),
      b(constant_parameter({weight.size(0), design.rank}, 0.0, weight.device())),
      dropout_rate(design.dropout) {
  scale = design.alpha / static_cast<double>(design.rank);
}

at::Tensor TrainedLora::apply(const at::Tensor& x, const at::Tensor&, const at::Generator& dropout) const {
  const at::Tensor inner = kernels::linear(dropped(x, dropout_rate, dropout), a.to(x.scalar_type()), {});
  return kernels::linear(inner, b.to(x.scalar_type()), {}) * scale;
}

at::Tensor TrainedLokr::Factor::value() const { return whole.defined() ? whole : at::matmul(a, b); }

TrainedLokr::TrainedLokr(const LokrDesign& design, const at::Tensor& weight, at::Generator& generator)
    : shape(LokrShape::of(weight.size(0), weight.size(1), design.dimension, design.factor, design.decompose_both)),
      alpha(shape.effective_alpha(design.alpha, design.dimension)) {
  scale = alpha / static_cast<double>(design.dimension);
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
  // The difference is small compared with the weight, so it is computed before rounding to the type of x.
  const at::Tensor difference = dora_weight(changed, dora_scale, kLokrNormEpsilon) - base;
  return kernels::linear(x, difference.to(x.scalar_type()), {});
}

/// Computes x * kron(w1, w2)^T without computing the Kronecker product. Views each position of x as a matrix [b, d],
/// and multiplies this matrix by w2 and by w1.
at::Tensor TrainedLokr::apply_factors(const at::Tensor& x) const {
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t width = sizes.back();
  sizes.back() = shape.in.small;
  sizes.push_back(width / shape.in.small);
  const auto typed = [&](const at::Tensor& matrix) { return matrix.to(x.scalar_type()); };
  at::Tensor rows = x.reshape(sizes);
  if (w2.whole.defined()) {
    rows = kernels::linear(rows, typed(w2.whole), {});
  } else {
    rows = kernels::linear(kernels::linear(rows, typed(w2.b), {}), typed(w2.a), {});
  }
  return at::matmul(typed(scaled_w1() * scale), rows).flatten(-2);
}

namespace {

/// The query, key, value and output projections of self- and cross-attention.
bool is_target(std::string_view name) {
  return name.ends_with(".q_proj") || name.ends_with(".k_proj") || name.ends_with(".v_proj") ||
         name.ends_with(".o_proj");
}

void check_range(const char* what, double value, double least, double most) {
  require(value >= least && value <= most, std::string(what) + " is " + std::to_string(value) + ", expected " +
                                               std::to_string(least) + " to " + std::to_string(most));
}

void check(const LoraDesign& design) {
  constexpr double kMost = 1e6;
  check_range("the rank of LoRA", static_cast<double>(design.rank), 1, kMost);
  check_range("the alpha of LoRA", design.alpha, 0, kMost);
  check_range("the dropout of LoRA", design.dropout, 0, 1);
}

void check(const LokrDesign& design) {
  constexpr double kMost = 1e6;
  check_range("the dimension of LoKr", static_cast<double>(design.dimension), 1, kMost);
  check_range("the alpha of LoKr", design.alpha, 0, kMost);
  if (design.factor != -1) check_range("the factor of LoKr", static_cast<double>(design.factor), 1, kMost);
}

std::shared_ptr<TrainedDelta> make_delta(const AdapterDesign& design, const at::Tensor& weight,
                                         at::Generator& generator) {
  if (const auto* lora = std::get_if<LoraDesign>(&design)) {
    return std::make_shared<TrainedLora>(*lora, weight, generator);
  }
  return std::make_shared<TrainedLokr>(std::get<LokrDesign>(design), weight, generator);
}

}  // namespace

TrainableAdapter::TrainableAdapter(Dit& dit, const AdapterDesign& design, uint64_t seed)
    : design_(design), dropout_seed_(std::make_shared<std::optional<uint64_t>>()) {
  std::visit([](const auto& chosen) { check(chosen); }, design);
  for (const Projection& projection : dit.projections()) {
    if (!is_target(projection.name)) continue;
    const auto index = static_cast<int64_t>(modules_.size());
    at::Generator generator = seeded_generator(stream_seed(seed, RandomStream::kInitialWeights, {index}), at::kCPU);
    const at::Tensor weight = projection.weight().data;  // a model in training has dense weights
    const auto delta = make_delta(design, weight, generator);
    projection.linear->branches.push_back(
        {projection.first_row, projection.rows, [weight, delta, index, dropout = dropout_seed_](const at::Tensor& x) {
           const auto generator = *dropout
                                      ? seeded_generator(stream_seed(**dropout, RandomStream::kDropout, {index}),
                                                         x.device())
                                      : at::Generator();
           return delta->apply(x, weight, generator);
         }});
    linears_.push_back(projection.linear);
    for (const auto& [name, tensor] : delta->parameters()) {
      parameters_.emplace_back(projection.name + "." + name, tensor);
    }
    modules_.push_back({projection.name, weight, delta});
  }
  require(!modules_.empty(), "this model has no attention projections to train");
}

TrainableAdapter::~TrainableAdapter() {
  for (nn::Linear* linear : linears_) linear->branches.clear();
}

int64_t TrainableAdapter::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters_) count += tensor.numel();
  return count;
}

}  // namespace carillon
