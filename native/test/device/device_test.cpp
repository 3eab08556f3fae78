// What the core settles on a GPU, and what it makes of its failures.
#include "core/runtime/device.h"

#include <ATen/ATen.h>

#include <thread>

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
  EXPECT(choose_device("auto") == kDevice);
  EXPECT(!at::globalContext().userEnabledCuDNNSDP());
  EXPECT_THROWS(choose_device("cuda:1"), "there are only 1");
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

TEST("device: a GPU that this libtorch has no kernels for is told from a fault") {
  const Error error = error_of([] { TORCH_CHECK(false, "CUDA error: no kernel image is available for execution"); });
  EXPECT(std::string(error.what()).find("SVC_DEVICE=cpu") != std::string::npos);
}

}  // namespace
}  // namespace carillon::test
