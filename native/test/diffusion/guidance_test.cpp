#include "core/diffusion/guidance.h"

#include <ATen/ATen.h>

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
  AdaptiveProjectedGuidance projected;
  const at::Tensor first = projected.guide(conditional(), unconditional(), 4.0);
  EXPECT(largest(first - rows({1.5f, 0, 4.321191f, -3, -2.466877f, -2.160596f, 3, -3.773501f, 0, -1.5f, 1.693375f,
                               -4.802979f})) < 1e-5);
  const at::Tensor second = projected.guide(conditional() * 0.5, unconditional(), 4.0);
  EXPECT(largest(second - rows({.625f, 0, 2.25f, -.75f, -.75f, -1.125f, 1.25f, -1.5f, 0, -.125f, .75f, -2.625f})) <
         1e-5);
}

TEST("guidance: scale 1 returns the conditional velocity") {
  AdaptiveProjectedGuidance projected;
  EXPECT(largest(projected.guide(conditional(), unconditional(), 1.0) - conditional()) < 1e-6);
}

TEST("guidance: angle-based guidance matches the reference, alone and in a batch") {
  const at::Tensor x = rows({.5f, -.5f, 1, 1, 0, .2f, -.3f, .7f, .1f, .9f, .9f, -.9f});
  const at::Tensor expected = rows({1.091406f, .386843f, 1.978782f, -.447436f, 1.216164f, -1.592244f, 3.111998f,
                                    -1.294660f, -.109867f, .823853f, 2.033230f, 1.123554f});
  EXPECT(largest(guide_by_angle(x, conditional(), unconditional(), 0.75, 4.0) - expected) < 1e-5);
  const auto batch = [](const at::Tensor& a) { return at::cat({a * 2.0, a}); };
  const at::Tensor both = guide_by_angle(batch(x), batch(conditional()), batch(unconditional()), 0.75, 4.0);
  EXPECT(largest(both.narrow(0, 1, 1) - expected) < 1e-5);
}

TEST("guidance: equal velocities stay unchanged") {
  const at::Tensor x = at::ones({2, 4, 3});
  const at::Tensor v = conditional().expand({2, -1, -1});
  EXPECT(largest(guide_by_angle(x, v, v, 0.5, 7.0) - v) < 1e-4);
  AdaptiveProjectedGuidance projected;
  EXPECT(largest(projected.guide(v, v, 7.0) - v) < 1e-6);
}
