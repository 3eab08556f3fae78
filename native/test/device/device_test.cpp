// How the core configures a GPU, and how it reports errors of a GPU.
#include "core/runtime/device.h"

#include <ATen/ATen.h>

#include <thread>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/qwen3/causal_lm.h"
#include "core/runtime/error.h"
#include "core/vae/networks.h"
#include "test/device/meter.h"
#include "test/test.h"
#include "test/tiny_vae.h"

namespace carillon::test {
namespace {

template <typename Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (...) {
    return current_error();
  }
  throw std::runtime_error("nothing was thrown");
}

at::Tensor ones() { return at::ones({8, 8}).to(kDevice); }

TEST("device: choosing a GPU disables cuDNN attention") {
  EXPECT(choose_placement("auto", "auto").device == kDevice);
  EXPECT(!at::globalContext().userEnabledCuDNNSDP());
  EXPECT_THROWS(choose_placement("cuda:1", "auto"), "'cuda:1' does not exist: the number of GPUs is 1");
}

TEST("device: a thread with its own stream launches nothing on the default stream") {
  const at::Tensor a = ones();
  DeviceMeter meter;
  std::thread([&] {
    use_own_stream(kDevice, true);
    use_own_stream(kDevice, true);
    a.matmul(a);
  }).join();
  EXPECT_EQ(meter.used().launches, 1);
  EXPECT_EQ(meter.used().launches_on_shared_stream, 0);
}

TEST("device: OOM error reports requested and free bytes, and memory is released") {
  const at::Tensor a = ones();
  fake_cuda_exhaust_after(0);
  const Error error = error_of([&] { a + 1; });
  EXPECT(error.code() == ErrorCode::kOutOfMemory);
  const std::string message = error.what();
  EXPECT(message.find("Tried to allocate") != std::string::npos);
  EXPECT(message.find("cuda:0 has") != std::string::npos);
  release_cached_memory();
  EXPECT((a + 1).sum().item<float>() == 128);
}

TEST("device: recognises out-of-memory errors of each CUDA library") {
  for (const char* words : {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                            "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory"}) {
    EXPECT(error_of([&] { TORCH_CHECK(false, words); }).code() == ErrorCode::kOutOfMemory);
  }
  EXPECT(error_of([] { TORCH_CHECK(false, "shapes differ"); }).code() == ErrorCode::kInternal);
}

TEST("device: a sticky error is reported as a lost device, also by later calls") {
  const at::Tensor a = ones();
  fake_cuda_fail_after(0);
  EXPECT(error_of([&] { a + 1; }).code() == ErrorCode::kDeviceLost);
  EXPECT(error_of([] { TORCH_CHECK(false, "CUBLAS_STATUS_EXECUTION_FAILED"); }).code() == ErrorCode::kDeviceLost);
  fake_cuda_repair();
  EXPECT(!is_device_lost());
}

TEST("device: a GPU without kernels in this libtorch gives a one-line error and releases everything") {
  const int64_t free = available_memory(kDevice);
  fake_cuda_forget_kernels(true);
  const Error error = error_of([] { CausalLm::load("models/carillon-nano/lm", {kDevice, at::kBFloat16}, Control()); });
  fake_cuda_forget_kernels(false);
  EXPECT(error.code() == ErrorCode::kBadArgument);
  const std::string message = error.what();
  EXPECT(message.find("SVC_DEVICE=cpu") != std::string::npos && message.find('\n') == std::string::npos);
  EXPECT_EQ(available_memory(kDevice), free);
}

TEST("device: rejects a checkpoint larger than free GPU memory with a one-line error before loading") {
  const at::Tensor other = at::empty({available_memory(kDevice) - (4 << 20)}, at::device(kDevice).dtype(at::kByte));
  const int64_t free = available_memory(kDevice);
  DeviceMeter meter;
  const Error error = error_of([] { CausalLm::load("models/carillon-nano/lm", {kDevice, at::kBFloat16}, Control()); });
  EXPECT(error.code() == ErrorCode::kOutOfMemory);
  const std::string message = error.what();
  EXPECT(message.find("models/carillon-nano/lm") != std::string::npos &&
         message.find("cuda:0 has 0.0 GB") != std::string::npos);
  EXPECT(message.find("SVC_QUANTIZATION") != std::string::npos && message.find('\n') == std::string::npos);
  EXPECT_EQ(meter.used().bytes_to_device, 0);
  EXPECT_EQ(available_memory(kDevice), free);
}

TEST("device: uploads large tensors intact and waits only before it reuses a buffer") {
  const at::Tensor large = at::randint(0, 1 << 30, {11 << 20}, at::kInt), odd = at::randn({3, 5}).t();
  DeviceMeter meter;
  const at::Tensor there = upload(large, kDevice), small = upload(odd, kDevice), none = upload(at::empty({0}), kDevice);
  EXPECT_EQ(meter.used().bytes_to_device, static_cast<int64_t>(large.nbytes() + odd.nbytes()));
  EXPECT(meter.used().synchronisations <= 3);  // waits once for each reuse of a buffer
  EXPECT(at::equal(there.cpu(), large) && at::equal(small.cpu(), odd) && none.is_cuda());
}

TEST("device: a GPU decodes songs together that fit the window together, and the rest afterwards") {
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  const VaeConfig config = VaeConfig::read(directory);
  const Weights weights = Checkpoint::open(directory).weights({kDevice, at::kFloat});
  const Oobleck decoder = Oobleck::load_decoder(weights.sub("decoder"), config, Products::kLibtorch);
  const at::Tensor latents = at::randn({3, 4, 50}, at::detail::createCPUGenerator(3)).to(kDevice);
  std::vector<std::pair<int64_t, int64_t>> tiles;  // first item, number of items
  const auto audio = decode_tiled(
      decoder, latents, config, /*window=*/128, Control(),
      [&](int64_t item, int64_t, const at::Tensor& part) { tiles.emplace_back(item, part.size(0)); });
  EXPECT((tiles == std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 1}}));
  for (int64_t item = 0; item < 3; ++item) {
    const at::Tensor alone = decode_tiled(decoder, latents.narrow(0, item, 1), config, 128, Control()).at(0);
    EXPECT(audio.at(static_cast<size_t>(item)).allclose(alone, 1e-4, 1e-5));
  }
}

}  // namespace
}  // namespace carillon::test
