#include "core/diffusion/guidance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "test/test.h"

using namespace carillon;

namespace {

at::Tensor rows(const std::vector<float>& values) { return at::tensor(values).reshape({1, 4, 3}); }

const at::Tensor& conditional() {
  static const at::Tensor v = rows({1, 0, 2, 0, 1, -1, 2, -1, 0, 1, 1, 1});
  return v;
}

const at::Tensor& unconditional() {
  static const at::Tensor v = rows({0, 0, -2, 1, 1, 1, 0, 2, 0, 1, -1, 4});
  return v;
}

double largest(const at::Tensor& difference) { return difference.abs().max().item<double>(); }

}  // namespace

TEST("guidance: projected guidance matches the reference and accumulates momentum") {
  AdaptiveProjectedGuidance projected({});
  const at::Tensor first = projected.guide(conditional(), unconditional(), 4.0);
  EXPECT(largest(first - rows({1.5f, 0, 4.321191f, -3, -2.466877f, -2.160596f, 3, -3.773501f, 0, -1.5f, 1.693375f,
                               -4.802979f})) < 1e-5);
  const at::Tensor second = projected.guide(conditional() * 0.5, unconditional(), 4.0);
  EXPECT(largest(second - rows({.625f, 0, 2.25f, -.75f, -.75f, -1.125f, 1.25f, -1.5f, 0, -.125f, .75f, -2.625f})) <
         1e-5);
}

TEST("guidance: scale 1 returns the conditional velocity") {
  AdaptiveProjectedGuidance projected({});
  EXPECT(largest(projected.guide(conditional(), unconditional(), 1.0) - conditional()) < 1e-6);
}

TEST("guidance: angle-based guidance matches the reference, alone and in a batch") {
  const at::Tensor x = rows({.5f, -.5f, 1, 1, 0, .2f, -.3f, .7f, .1f, .9f, .9f, -.9f});
  const at::Tensor expected = rows({1.091406f, .386843f, 1.978782f, -.447436f, 1.216164f, -1.592244f, 3.111998f,
                                    -1.294660f, -.109867f, .823853f, 2.033230f, 1.123554f});
  const at::Tensor alone = guide_by_angle(GuidanceVariant::kAdg, x, conditional(), unconditional(), 0.75, 4.0);
  EXPECT(largest(alone - expected) < 1e-5);
  const auto batch = [](const at::Tensor& a) { return at::cat({a * 2.0, a}); };
  const at::Tensor both =
      guide_by_angle(GuidanceVariant::kAdg, batch(x), batch(conditional()), batch(unconditional()), 0.75, 4.0);
  EXPECT(largest(both.narrow(0, 1, 1) - expected) < 1e-5);
}

TEST("guidance: equal velocities stay unchanged") {
  const at::Tensor x = at::ones({2, 4, 3});
  const at::Tensor v = conditional().expand({2, -1, -1});
  EXPECT(largest(guide_by_angle(GuidanceVariant::kAdg, x, v, v, 0.5, 7.0) - v) < 1e-4);
  AdaptiveProjectedGuidance projected({});
  EXPECT(largest(projected.guide(v, v, 7.0) - v) < 1e-6);
}

// The expected values below are computed for each vector with plain loops.

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double norm(const Vector& a) { return std::sqrt(dot(a, a)); }

Vector vector_of(const at::Tensor& values) {
  const at::Tensor wide = values.to(at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

/// Projected guidance of one channel over time; `sum` is the guidance with momentum.
Vector projected_channel(const Vector& conditional, Vector sum, double scale, double eta, double limit) {
  const double length = norm(sum);
  if (limit > 0 && length > limit) {
    for (double& value : sum) value *= limit / length;
  }
  const double along = dot(sum, conditional) / dot(conditional, conditional);
  Vector guided = conditional;
  for (size_t i = 0; i < guided.size(); ++i) {
    const double parallel = along * conditional[i];
    guided[i] += (scale - 1) * (sum[i] - parallel + eta * parallel);
  }
  return guided;
}

/// The predicted data of one frame, turned by angle-based guidance.
Vector turned_frame(const Vector& p, const Vector& q, double weight, double most) {
  const double angle = std::acos(dot(p, q) / norm(p) / norm(q));
  const double turned = std::min(weight * angle, most);
  Vector apart = p, result = p;
  for (size_t i = 0; i < p.size(); ++i) apart[i] -= q[i];
  const double along = dot(apart, q) / dot(q, q);
  for (size_t i = 0; i < p.size(); ++i) {
    result[i] = std::cos(turned) * p[i] + (apart[i] - along * q[i]) * std::sin(turned) / std::sin(angle);
  }
  return result;
}

}  // namespace

TEST("guidance: eta, momentum and the norm threshold of projected guidance match plain loops") {
  for (const auto& options : {AdaptiveProjectedGuidance::Options{.eta = 0.5, .momentum = 0.25, .norm_threshold = 1.0},
                              AdaptiveProjectedGuidance::Options{.eta = -1, .momentum = 0, .norm_threshold = 0}}) {
    AdaptiveProjectedGuidance projected(options);
    projected.guide(conditional() * 0.5, unconditional(), 3.0);
    const at::Tensor found = projected.guide(conditional(), unconditional(), 3.0);
    const at::Tensor first = conditional() * 0.5 - unconditional(), second = conditional() - unconditional();
    const at::Tensor sum = second + options.momentum * first;
    for (int64_t channel = 0; channel < 3; ++channel) {
      const auto column = [&](const at::Tensor& x) { return vector_of(x[0].select(1, channel)); };
      const Vector expected =
          projected_channel(column(conditional()), column(sum), 3.0, options.eta, options.norm_threshold);
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(column(found)[i], expected[i], 1e-5);
    }
  }
}

TEST("guidance: plain guidance moves away from the unconditional velocity") {
  const at::Tensor found = guide_plainly(conditional(), unconditional(), 3.0);
  EXPECT(largest(found - (3 * conditional() - 2 * unconditional())) < 1e-6);
}

TEST("guidance: angle-based guidance without a limit, and with the norm of the conditional data, match plain loops") {
  const at::Tensor x = rows({.5f, -.5f, 1, 1, 0, .2f, -.3f, .7f, .1f, .9f, .9f, -.9f});
  const double time = 0.75, weight = 3.0 + 1e-3;
  const at::Tensor p = x - time * conditional(), q = x - time * unconditional();
  const auto turned = [&](double most) {
    at::Tensor data = at::empty({1, 4, 3});
    for (int64_t frame = 0; frame < 4; ++frame) {
      const Vector row = turned_frame(vector_of(p[0][frame]), vector_of(q[0][frame]), weight, most);
      for (int64_t channel = 0; channel < 3; ++channel) data[0][frame][channel] = row[static_cast<size_t>(channel)];
    }
    return data;
  };
  const auto found = [&](GuidanceVariant variant) {
    return guide_by_angle(variant, x, conditional(), unconditional(), time, 4.0);
  };
  EXPECT(largest(found(GuidanceVariant::kAdgUnlimited) - (x - turned(100.0)) / time) < 1e-4);
  at::Tensor normed = turned(3.14 / 3);
  for (int64_t channel = 0; channel < 3; ++channel) {
    const auto column = [&](const at::Tensor& data) { return vector_of(data[0].select(1, channel)); };
    normed[0].select(1, channel).mul_(norm(column(p)) / norm(column(normed)));
  }
  EXPECT(largest(found(GuidanceVariant::kAdgNormed) - (x - normed) / time) < 1e-4);
}
