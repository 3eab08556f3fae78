// The fake device rejects what a GPU rejects, and counts operations.
#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "core/runtime/cuda_graph.h"
#include "test/device/meter.h"
#include "test/test.h"

namespace carillon::test {
namespace {

constexpr int kHostAccess = 86;

at::Tensor on_device(at::IntArrayRef shape) { return at::ones(shape).to(kDevice); }

/// Runs `action` in a child process and returns its exit status.
template <typename Action>
int status_of(const Action& action) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    action();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST("fake_cuda: the host can neither read nor write device memory") {
  const at::Tensor tensor = on_device({4});
  EXPECT_EQ(status_of([&] { [[maybe_unused]] volatile float first = tensor.const_data_ptr<float>()[0]; }), kHostAccess);
  EXPECT_EQ(status_of([&] { tensor.mutable_data_ptr<float>()[0] = 2; }), kHostAccess);
}

TEST("fake_cuda: computes the same as the CPU") {
  const at::Tensor a = at::arange(12, at::kFloat).reshape({3, 4}), b = at::arange(8, at::kFloat).reshape({4, 2});
  EXPECT(a.to(kDevice).matmul(b.to(kDevice)).cpu().allclose(a.matmul(b)));
  EXPECT(a.to(kDevice).softmax(-1).cpu().allclose(a.softmax(-1)));
}

TEST("fake_cuda: refuses operands of different devices") {
  const at::Tensor a = on_device({2, 2});
  EXPECT_THROWS(a + at::ones({2, 2}), "same device");
  EXPECT_THROWS(at::cat({a, at::ones({2, 2})}), "same device");
  EXPECT_THROWS(at::where(at::ones({2, 2}, at::kBool), a, a), "same device");
  EXPECT_THROWS(a.index_select(0, at::zeros({1}, at::kLong)), "same device");
  EXPECT((a + at::scalar_tensor(2.0)).is_cuda());  // CPU scalars are allowed
}

TEST("fake_cuda: uninitialised memory is NaN") {
  EXPECT(at::empty({100}, at::device(kDevice).dtype(at::kFloat)).isnan().all().item<bool>());
}

TEST("fake_cuda: counts launches and synchronisations, and rejects synchronisation during capture") {
  const at::Tensor a = on_device({8, 8});
  const DeviceMeter meter;
  const at::Tensor product = a.matmul(a);
  EXPECT_EQ(meter.used().launches, 1);
  EXPECT_EQ(meter.used().synchronisations, 0);
  product.sum().item<float>();
  EXPECT_EQ(meter.used().synchronisations, 1);
  EXPECT_THROWS(LaunchGraph::capture(kDevice, [&] { product.sum().item<float>(); }), "capturing");
}

TEST("fake_cuda: a replay repeats the captured work on current memory and counts as one launch") {
  at::Tensor counter = at::zeros({1}).to(kDevice), sum = at::zeros({2, 2}).to(kDevice), twice;
  const auto graph = LaunchGraph::capture(kDevice, [&] {
    counter.add_(1);
    twice = (sum.add_(counter) * 2).matmul(sum);
  });
  EXPECT_EQ(counter.item<float>(), 0);  // captured but not run
  EXPECT(twice.isnan().all().item<bool>());
  DeviceMeter meter;
  graph->replay();
  graph->replay();
  EXPECT_EQ(meter.used().launches, 2);
  EXPECT_EQ(counter.item<float>(), 2);
  EXPECT((twice == 2 * 3 * 3 * 2).all().item<bool>());
}

TEST("fake_cuda: simulates out-of-memory and sticky errors on request") {
  const auto options = at::device(kDevice).dtype(at::kFloat);
  fake_cuda_exhaust_after(0);
  EXPECT_THROWS(at::empty({1000}, options), "out of memory");
  const at::Tensor a = at::empty({1000}, options);
  fake_cuda_fail_after(0);
  EXPECT_THROWS(a + 1, "illegal memory access");
  EXPECT_THROWS(a.cpu(), "illegal memory access");
  fake_cuda_repair();
  EXPECT_EQ((a.zero_() + 1).sum().item<float>(), 1000);
}

}  // namespace
}  // namespace carillon::test
