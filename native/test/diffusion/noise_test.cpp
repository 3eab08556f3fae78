#include <ATen/ATen.h>

#include "core/diffusion/denoise.h"
#include "test/test.h"

using namespace carillon;

TEST("noise: the numbers of torch.randn on the CPU for seed 42") {
  const at::Tensor noise = NoiseStreams({42}).next(2, 4, at::kCPU);
  const at::Tensor expected = at::tensor({0.3367f, 0.1288f, 0.2345f, 0.2303f, -1.1229f, -0.1863f, 2.2082f, -0.6380f});
  EXPECT((noise.flatten() - expected).abs().max().item<double>() < 1e-4);
}

TEST("noise: an item's noise does not depend on its neighbours, and goes on") {
  NoiseStreams pair({7, 8}), alone({8});
  for (int draw = 0; draw < 3; ++draw) {
    EXPECT(pair.next(10, 4, at::kCPU)[1].equal(alone.next(10, 4, at::kCPU)[0]));
  }
  NoiseStreams again({8});
  EXPECT(!again.next(10, 4, at::kCPU).equal(again.next(10, 4, at::kCPU)));
  EXPECT_THROWS(NoiseStreams({}), "at least one seed");
}
