#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "core/diffusion/noise.h"
#include "test/test.h"

using namespace carillon;

namespace {

at::Tensor first_numbers(uint64_t seed, int64_t count) { return PhiloxStream(seed).normal({count}); }

}  // namespace

TEST("noise: equals torch.randn on CUDA") {
  const at::Tensor zero = at::tensor({-0.9247f, -0.4253f, -2.6438f, 0.1452f, -0.1209f, -0.5797f, -0.6229f, -0.3284f});
  const at::Tensor other = at::tensor({-1.6165f, 0.5685f, -0.5102f, -0.9113f, -1.1555f, -0.2262f, -1.2891f, 1.0654f});
  EXPECT((first_numbers(0, 8) - zero).abs().max().item<double>() < 1e-4);
  EXPECT((first_numbers(1234, 8) - other).abs().max().item<double>() < 1e-4);
}

TEST("noise: has the same bits on every machine and for any number of threads") {
  constexpr int64_t kCount = 1 << 20;
  const at::Tensor numbers = first_numbers(42, kCount);
  const auto* const words = static_cast<const uint32_t*>(numbers.const_data_ptr());
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (int64_t i = 0; i < kCount; ++i) hash = (hash ^ words[i]) * 0x100000001b3;
  EXPECT_EQ(hash, uint64_t{0x21e91c991eec90d1});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = first_numbers(42, kCount);
  at::set_num_threads(threads);
  EXPECT(alone.equal(numbers));
}

TEST("noise: is standard normal, also in its tails") {
  const at::Tensor numbers = first_numbers(7, 1 << 20).to(at::kDouble);
  EXPECT(std::abs(numbers.mean().item<double>()) < 5e-3);
  EXPECT(std::abs(numbers.std().item<double>() - 1.0) < 5e-3);
  EXPECT(std::abs(numbers.abs().gt(3.0).to(at::kDouble).mean().item<double>() - 0.0027) < 3e-4);
}

TEST("noise: a longer song starts with the noise of a shorter one") {
  EXPECT(first_numbers(3, 64).equal(first_numbers(3, 5000).narrow(0, 0, 64)));
}

TEST("noise: an item does not depend on the batch, and successive draws differ") {
  NoiseStreams pair({7, 8}), alone({8});
  for (int draw = 0; draw < 3; ++draw) {
    EXPECT(pair.next(10, 4, at::kCPU)[1].equal(alone.next(10, 4, at::kCPU)[0]));
  }
  NoiseStreams again({8});
  EXPECT(!again.next(10, 4, at::kCPU).equal(again.next(10, 4, at::kCPU)));
  EXPECT_THROWS(NoiseStreams({}), "at least one seed");
}

TEST("noise: seeds that differ in any bit give different noise") {
  const auto of = [](uint64_t seed) { return first_numbers(seed, 32); };
  for (const uint64_t low : {uint64_t{0}, uint64_t{5}, uint64_t{0xffffffff}}) {
    for (int bit = 0; bit < 64; ++bit) EXPECT(!of(low ^ uint64_t{1} << bit).equal(of(low)));
  }
}

TEST("noise: uniform numbers are strictly between 0 and 1 and advance the stream of normal numbers") {
  PhiloxStream stream(5), same(5);
  for (int i = 0; i < 1000; ++i) {
    const double drawn = stream.uniform();
    EXPECT(drawn > 0.0 && drawn < 1.0);
    EXPECT_EQ(drawn, same.uniform());
  }
  EXPECT(!stream.normal({4}).equal(PhiloxStream(5).normal({4})));
}
