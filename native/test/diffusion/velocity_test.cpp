#include "core/diffusion/velocity.h"

#include <ATen/ATen.h>

#include "test/test.h"

using namespace carillon;

namespace {

/// [2, 1, 2]: two items of one frame.
at::Tensor items(std::vector<float> values) { return at::tensor(values).reshape({2, 1, 2}); }

double apart(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST("velocity: a filter that is off returns the velocity itself") {
  VelocityFilter filter(0, 0);
  const at::Tensor velocity = items({3, 4, 6, 8});
  EXPECT(filter.begin_step(velocity, velocity).is_same(velocity));
  EXPECT(filter.end_step(velocity, velocity).is_same(velocity));
}

TEST("velocity: the norm is limited to a multiple of the state's norm, for each item") {
  VelocityFilter filter(2, 0);
  const at::Tensor state = items({0, 1, 6, 8}), velocity = items({3, 4, 3, 4});
  // Norms of the states: 1 and 10; of the velocities: 5. Only the first exceeds its limit of 2.
  EXPECT(apart(filter.begin_step(velocity, state), items({1.2f, 1.6f, 3, 4})) < 1e-6);
  EXPECT(apart(filter.end_step(velocity, state), items({1.2f, 1.6f, 3, 4})) < 1e-6);
}

TEST("velocity: smoothing mixes each step with the filtered velocity of the step before") {
  VelocityFilter filter(0, 0.25);
  const at::Tensor state = at::ones({2, 1, 2});
  at::Tensor velocity = items({4, 4, 4, 4});
  EXPECT(apart(filter.begin_step(velocity, state), velocity) == 0);
  velocity.fill_(99);  // the next evaluation overwrites its result
  EXPECT(apart(filter.begin_step(items({8, 8, 8, 8}), state), at::full({2, 1, 2}, 7)) < 1e-6);   // .75 * 8 + .25 * 4
  EXPECT(apart(filter.end_step(items({3, 3, 3, 3}), state), at::full({2, 1, 2}, 4)) < 1e-6);     // .75 * 3 + .25 * 7
  EXPECT(apart(filter.begin_step(items({0, 0, 0, 0}), state), at::full({2, 1, 2}, 1.375)) < 1e-6);  // .25 * (7 + 4) / 2
}
