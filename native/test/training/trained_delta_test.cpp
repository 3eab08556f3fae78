// Trains LoRA, LoKr and DoRA on a single projection.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "core/adapters/adapter.h"
#include "core/training/random_draws.h"
#include "core/training/trainable_adapter.h"
#include "test/test.h"
#include "test/tiny_ace_step.h"
#include "test/training/designs.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr int64_t kOut = 24, kIn = 32;

at::Generator generator(uint64_t seed = 1) { return seeded_generator(seed, at::kCPU); }

/// All variants of LoKr: w1 and w2 whole or factored, with and without scalar and magnitude.
std::vector<LokrDesign> lokr_designs() {
  std::vector<LokrDesign> designs;
  for (const bool dora : {false, true}) {
    for (const bool scalar : {false, true}) {
      designs.push_back(Lokr{.dimension = 16, .alpha = 5, .use_scalar = scalar, .weight_decompose = dora});
      designs.push_back(Lokr{.dimension = 2, .alpha = 5, .factor = 4, .use_scalar = scalar, .weight_decompose = dora});
      designs.push_back(
          Lokr{.dimension = 1, .alpha = 3, .decompose_both = true, .use_scalar = scalar, .weight_decompose = dora});
    }
  }
  return designs;
}

/// A LoKr with random double tensors.
TrainedLokr random_double_lokr(const LokrDesign& design, const at::Tensor& weight) {
  at::Generator random = generator(7);
  TrainedLokr lokr(design, weight, random);
  for (at::Tensor* tensor : {&lokr.w1.whole, &lokr.w1.a, &lokr.w1.b, &lokr.w2.whole, &lokr.w2.a, &lokr.w2.b,
                             &lokr.scalar, &lokr.dora_scale}) {
    if (!tensor->defined()) continue;
    *tensor = (at::randn(tensor->sizes(), random, at::kDouble) * 0.5 + 0.2).requires_grad_();
  }
  return lokr;
}

/// Maximum error of the gradients of sum(output * g), compared with central differences.
double gradient_error(const TrainedDelta& delta, const at::Tensor& x, const at::Tensor& weight) {
  constexpr double kStep = 1e-6;
  const at::Tensor g = at::randn({x.size(0), weight.size(0)}, generator(9), at::kDouble);
  const auto value = [&] { return (delta.apply(x, weight, {}) * g).sum(); };
  value().backward();
  double worst = 0;
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : delta.parameters()) {
    const at::Tensor flat = parameter.detach().view({-1}), gradient = parameter.grad().view({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      at::Tensor element = flat[i];
      element.add_(kStep);
      const double above = value().item<double>();
      element.sub_(2 * kStep);
      const double below = value().item<double>();
      element.add_(kStep);
      worst = std::max(worst, std::abs((above - below) / (2 * kStep) - gradient[i].item<double>()));
    }
  }
  return worst;
}

}  // namespace

TEST("trained delta: LoRA starts at zero, with A within its bound and B zero") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1), x = random_tensor({5, kIn}, 2);
  at::Generator random = generator();
  const TrainedLora lora(Lora{.rank = 4, .alpha = 8, .dropout = 0.0}, weight, random);
  EXPECT(lora.a.sizes() == at::IntArrayRef({4, kIn}));
  EXPECT(lora.b.sizes() == at::IntArrayRef({kOut, 4}));
  EXPECT_EQ(lora.scale, 2.0);
  const double bound = 1.0 / std::sqrt(static_cast<double>(kIn));
  EXPECT(lora.a.abs().max().item<double>() <= bound);
  EXPECT(lora.a.abs().max().item<double>() > 0.9 * bound);
  EXPECT_EQ(lora.apply(x, weight, {}).abs().max().item<double>(), 0.0);
}

TEST("trained delta: LoRA follows the merge formula") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1), x = random_tensor({5, kIn}, 2);
  at::Generator random = generator();
  TrainedLora lora(Lora{.rank = 4, .alpha = 6, .dropout = 0.5}, weight, random);
  lora.b = random_tensor({kOut, 4}, 3);
  EXPECT(largest_difference(lora.apply(x, weight, {}), at::linear(x, at::matmul(lora.b, lora.a) * 1.5)) < 1e-5);
}

TEST("trained delta: dropout zeroes a share of A's input, keeps the mean, and repeats for equal seeds") {
  const at::Tensor weight = at::zeros({1, 20000}), x = at::ones({1, 20000});
  at::Generator random = generator();
  TrainedLora lora(Lora{.rank = 1, .alpha = 1, .dropout = 0.25}, weight, random);
  lora.a = at::ones({1, 20000});
  lora.b = at::ones({1, 1});
  const auto sum = [&](uint64_t seed) { return lora.apply(x, weight, generator(seed)).item<double>(); };
  EXPECT_NEAR(sum(5) / 20000, 1.0, 0.02);
  EXPECT_NEAR(sum(5) * 0.75, std::round(sum(5) * 0.75), 0.02);
  EXPECT_EQ(sum(5), sum(5));
  EXPECT(sum(5) != sum(6));
  lora.dropout_rate = 1.0;
  EXPECT_EQ(sum(5), 0.0);
}

TEST("trained delta: LoKr starts at zero for every design") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1), x = random_tensor({5, kIn}, 2);
  for (const LokrDesign& design : lokr_designs()) {
    at::Generator random = generator();
    const TrainedLokr lokr(design, weight, random);
    // The epsilon in DoRA's norm changes the last bits of the result.
    const double most = design.weight_decompose ? 1e-5 : 0.0;
    EXPECT(lokr.apply(x, weight, {}).abs().max().item<double>() <= most);
    EXPECT_EQ(lokr.scalar.defined(), design.use_scalar);
    if (design.use_scalar) EXPECT_EQ(lokr.scalar.item<double>(), 0.0);
    EXPECT(lokr.w1.value().abs().max().item<double>() > 0.0);
    EXPECT_EQ(lokr.w2.value().abs().max().item<double>() > 0.0, design.use_scalar);
    if (design.weight_decompose) EXPECT(largest_difference(lokr.dora_scale, weight.norm(2, {1}, true)) < 1e-6);
  }
}

TEST("trained delta: LoKr has the shapes, alpha and scale of its design") {
  const at::Tensor weight = at::zeros({kOut, kIn});  // 24 = 4 * 6, 32 = 4 * 8
  at::Generator random = generator();
  const TrainedLokr whole(Lokr{.dimension = 16, .alpha = 5, .weight_decompose = false}, weight, random);
  EXPECT(whole.w1.whole.sizes() == at::IntArrayRef({4, 4}));
  EXPECT(whole.w2.whole.sizes() == at::IntArrayRef({6, 8}));
  EXPECT_EQ(whole.alpha, 16.0);
  EXPECT_EQ(whole.scale, 1.0);

  const TrainedLokr split(Lokr{.dimension = 1, .alpha = 3, .decompose_both = true}, weight, random);
  EXPECT(split.w1.a.sizes() == at::IntArrayRef({4, 1}));
  EXPECT(split.w1.b.sizes() == at::IntArrayRef({1, 4}));
  EXPECT(split.w2.a.sizes() == at::IntArrayRef({6, 1}));
  EXPECT(split.w2.b.sizes() == at::IntArrayRef({1, 8}));
  EXPECT(split.dora_scale.sizes() == at::IntArrayRef({kOut, 1}));
  EXPECT_EQ(split.scale, 3.0);
  EXPECT_EQ(TrainedLokr(Lokr{.dimension = 2, .alpha = 0, .factor = 4}, weight, random).scale, 1.0);
}

TEST("trained delta: applying the factors of a LoKr equals applying their Kronecker product") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1).to(at::kDouble);
  const at::Tensor x = random_tensor({2, 5, kIn}, 2).to(at::kDouble);
  for (const LokrDesign& design : lokr_designs()) {
    const TrainedLokr lokr = random_double_lokr(design, weight);
    const at::Tensor delta = lokr_delta(lokr.scaled_w1(), lokr.w2.value(), lokr.scale);
    const at::Tensor changed =
        design.weight_decompose ? dora_weight(weight + delta, lokr.dora_scale, kLokrNormEpsilon) : weight + delta;
    EXPECT(largest_difference(lokr.apply(x, weight, {}), at::linear(x, changed - weight)) < 1e-12);
  }
}

TEST("trained delta: gradients match finite differences") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1).to(at::kDouble);
  const at::Tensor x = random_tensor({3, kIn}, 2).to(at::kDouble);
  at::Generator random = generator();
  TrainedLora lora(Lora{.rank = 3, .alpha = 5, .dropout = 0.0}, weight, random);
  lora.a = at::randn({3, kIn}, random, at::kDouble).requires_grad_();
  lora.b = at::randn({kOut, 3}, random, at::kDouble).requires_grad_();
  EXPECT(gradient_error(lora, x, weight) < 1e-6);
  for (const LokrDesign& design : lokr_designs()) {
    EXPECT(gradient_error(random_double_lokr(design, weight), x, weight) < 1e-6);
  }
}

TEST("trained delta: the gradient includes the norm of DoRA") {
  // DoRA's norm cancels a change that is parallel to the weight, so the gradient along the weight is zero. It would not
  // be zero without the gradient of the norm.
  const at::Tensor weight = random_tensor({1, 4}, 1);
  at::Generator random = generator();
  TrainedLokr lokr(Lokr{.dimension = 4, .factor = 1}, weight, random);
  lokr.w1.whole = at::ones({1, 1});
  lokr.w2.whole = weight.clone().requires_grad_();
  lokr.apply(random_tensor({3, 4}, 2), weight, {}).sum().backward();
  EXPECT_NEAR((lokr.w2.whole.grad() * weight).sum().item<double>(), 0.0, 1e-5);
  EXPECT(lokr.w2.whole.grad().abs().max().item<double>() > 1e-3);
}

TEST("trained delta: at the first step only LoKr's scalar has a gradient, later the factors too") {
  const at::Tensor weight = random_tensor({kOut, kIn}, 1), x = random_tensor({5, kIn}, 2);
  at::Generator random = generator();
  TrainedLokr lokr(Lokr{.dimension = 16, .use_scalar = true, .weight_decompose = false}, weight, random);
  const auto gradients = [&] {
    (lokr.apply(x, weight, {}) * random_tensor({5, kOut}, 3)).sum().backward();
    return std::pair(lokr.scalar.grad().abs().item<double>(), lokr.w1.whole.grad().abs().max().item<double>());
  };
  const auto first = gradients();
  EXPECT(first.first > 0.0);
  EXPECT_EQ(first.second, 0.0);
  lokr.scalar = at::full({}, 0.5).requires_grad_();
  EXPECT(gradients().second > 0.0);
}

TEST("trained delta: a small change of a bfloat16 weight is computed in float32 and not rounded away") {
  const at::Tensor weight = at::full({kOut, kIn}, 100.0, at::kBFloat16), x = at::ones({1, kIn}, at::kBFloat16);
  at::Generator random = generator();
  TrainedLokr lokr(Lokr{.dimension = 16, .weight_decompose = true}, weight, random);
  EXPECT(lokr.dora_scale.scalar_type() == at::kFloat);
  lokr.dora_scale = lokr.dora_scale.detach() * (1 + 1e-5);
  // All 32 inputs are 1, and each weight grows from 100 to 100.001. The product shows this growth, although
  // neighbouring bfloat16 numbers near 100 are 0.5 apart.
  EXPECT_NEAR(lokr.apply(x, weight, {})[0][0].item<double>(), kIn * 1e-3, kIn * 1e-4);
}
