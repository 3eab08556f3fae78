// What the core settles on a GPU, and what it makes of its failures.
#include "core/runtime/device.h"

#include <ATen/ATen.h>

#include <thread>

#include "core/qwen3/causal_lm.h"
#include "core/runtime/error.h"
#include "test/device/meter.h"
#include "test/test.h"

namespace carillon::test {
namespace {

const at::Device kDevice(at::kCUDA, 0);

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

TEST("device: cuDNN attends to nothing once a GPU was chosen") {
  EXPECT(choose_placement("auto", "auto").device == kDevice);
  EXPECT(!at::globalContext().userEnabledCuDNNSDP());
  EXPECT_THROWS(choose_placement("cuda:1", "auto"), "there are only 1");
}

TEST("device: a thread with a stream of its own launches nothing on the shared one") {
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

TEST("device: memory that ran out is told with what was asked and what is free, and comes back") {
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

TEST("device: libraries that find no memory have words of their own for it") {
  for (const char* words : {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                            "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory"}) {
    EXPECT(error_of([&] { TORCH_CHECK(false, words); }).code() == ErrorCode::kOutOfMemory);
  }
  EXPECT(error_of([] { TORCH_CHECK(false, "shapes differ"); }).code() == ErrorCode::kInternal);
}

TEST("device: an error that stays is a lost device, whatever it is then called") {
  const at::Tensor a = ones();
  fake_cuda_fail_after(0);
  EXPECT(error_of([&] { a + 1; }).code() == ErrorCode::kDeviceLost);
  EXPECT(error_of([] { TORCH_CHECK(false, "CUBLAS_STATUS_EXECUTION_FAILED"); }).code() == ErrorCode::kDeviceLost);
  fake_cuda_mend();
  EXPECT(!is_device_lost());
}

TEST("device: a GPU of a generation that this libtorch has no kernels for is one line, and nothing stays loaded") {
  const int64_t free = available_memory(kDevice);
  fake_cuda_forget_kernels(true);
  const Error error = error_of([] { CausalLm::load("models/carillon-nano/lm", {kDevice, at::kBFloat16}, Control()); });
  fake_cuda_forget_kernels(false);
  EXPECT(error.code() == ErrorCode::kBadArgument);
  const std::string message = error.what();
  EXPECT(message.find("SVC_DEVICE=cpu") != std::string::npos && message.find('\n') == std::string::npos);
  EXPECT_EQ(available_memory(kDevice), free);
}

TEST("device: a checkpoint larger than the GPU's free memory is one line, and nothing of it is loaded") {
  const at::Tensor other = at::empty({available_memory(kDevice) - (4 << 20)}, at::device(kDevice).dtype(at::kByte));
  const int64_t free = available_memory(kDevice);
  DeviceMeter meter;
  const Error error = error_of([] { CausalLm::load("models/carillon-nano/lm", {kDevice, at::kBFloat16}, Control()); });
  EXPECT(error.code() == ErrorCode::kOutOfMemory);
  const std::string message = error.what();
  EXPECT(message.find("models/carillon-nano/lm") != std::string::npos && message.find("cuda:0 has 0.0 GB") != std::string::npos);
  EXPECT(message.find("SVC_QUANTIZATION") != std::string::npos && message.find('\n') == std::string::npos);
  EXPECT_EQ(meter.used().bytes_to_device, 0);
  EXPECT_EQ(available_memory(kDevice), free);
}

TEST("device: large tensors arrive whole, and nobody waits for what is on its way") {
  const at::Tensor large = at::randint(0, 1 << 30, {11 << 20}, at::kInt), odd = at::randn({3, 5}).t();
  DeviceMeter meter;
  const at::Tensor there = upload(large, kDevice), small = upload(odd, kDevice), none = upload(at::empty({0}), kDevice);
  EXPECT_EQ(meter.used().bytes_to_device, static_cast<int64_t>(large.nbytes() + odd.nbytes()));
  EXPECT(meter.used().synchronisations <= 3);  // a buffer that is filled again has been sent
  EXPECT(at::equal(there.cpu(), large) && at::equal(small.cpu(), odd) && none.is_cuda());
}

}  // namespace
}  // namespace carillon::test
