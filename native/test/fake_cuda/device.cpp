#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "counters.h"
#include "memory.h"

namespace fake_cuda {
namespace {

const auto kDevices = static_cast<DeviceIndex>(setting("FAKE_CUDA_DEVICES", 1));
constexpr long kCudnnVersion = 92000;

thread_local DeviceIndex device_of_thread = 0;
thread_local std::map<DeviceIndex, c10::StreamId> streams_of_thread;

void set_device(DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < kDevices, "CUDA error: invalid device ordinal");
  device_of_thread = device;
}

class Generator final : public c10::GeneratorImpl {
 public:
  Generator(DeviceIndex device, at::Generator inner)
      : c10::GeneratorImpl(c10::Device(c10::kCUDA, device), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        host(std::move(inner)) {}
  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host.set_offset(offset); }
  uint64_t get_offset() const override { return host.get_offset(); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return host.seed(); }
  void set_state(const c10::TensorImpl& state) override { host.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host.unsafeGetGeneratorImpl()->get_state(); }

  at::Generator host;

 private:
  Generator* clone_impl() const override { return new Generator(device().index(), host.clone()); }
};

const at::Generator& default_generator(DeviceIndex device) {
  static auto* const all = [] {
    auto* const generators = new std::vector<at::Generator>;
    for (DeviceIndex i = 0; i < kDevices; ++i) {
      generators->push_back(at::make_generator<Generator>(i, at::detail::createCPUGenerator(1)));
    }
    return generators;
  }();
  return all->at(static_cast<size_t>(device < 0 ? device_of_thread : device));
}

/// Guard of a fake device. Work runs synchronously, so streams and events do nothing. Streams still have distinct ids.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    set_device(device.index());
    return before;
  }
  c10::Device getDevice() const override { return {c10::kCUDA, device_of_thread}; }
  void setDevice(c10::Device device) const override { set_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) device_of_thread = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    const DeviceIndex index = device.index() < 0 ? device_of_thread : device.index();
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, index), streams_of_thread[index]);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    static std::atomic<int64_t> next{1};
    return c10::Stream(c10::Stream::UNSAFE, device, next++);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    streams_of_thread[stream.device_index()] = stream.id();
    return before;
  }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  void record(void** event, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {
    *event = const_cast<Guard*>(this);  // any non-null value
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  DeviceIndex deviceCount() const noexcept override { return kDevices; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { count_synchronisation("stream"); }
  void synchronizeEvent(void*) const override { count_synchronisation("event"); }
  void synchronizeDevice(const DeviceIndex) const override { count_synchronisation("device"); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace

DeviceIndex device_count() { return kDevices; }
DeviceIndex current_device() { return device_of_thread; }
bool has_own_stream() {
  return std::any_of(streams_of_thread.begin(), streams_of_thread.end(), [](const auto& of) { return of.second != 0; });
}

at::Generator host_generator(const at::Generator& device_generator) {
  return static_cast<Generator*>(device_generator.unsafeGetGeneratorImpl())->host;
}

}  // namespace fake_cuda

/// libtorch looks up the CUDA hooks by the name of this struct.
struct CUDAHooks : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return hasCUDA(); }
  bool hasPrimaryContext(c10::DeviceIndex device) const override { return fake_cuda::peak_bytes(device) > 0; }
  c10::DeviceIndex deviceCount() const override { return fake_cuda::kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { fake_cuda::set_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return fake_cuda::device_of_thread; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return std::exchange(fake_cuda::device_of_thread, device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  bool hasCUDA() const override { return fake_cuda::kDevices > 0; }
  bool hasCUDART() const override { return true; }
  bool hasCuDNN() const override { return true; }
  c10::DeviceIndex current_device() const override { return fake_cuda::device_of_thread; }
  at::Allocator* getPinnedMemoryAllocator() const override { return &fake_cuda::pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return fake_cuda::is_pinned(data); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return fake_cuda::default_generator(device);
  }
  at::Allocator* getCUDADeviceAllocator() const override { return &fake_cuda::allocator(); }
  at::Device getDeviceFromPtr(void* data) const override { return {c10::kCUDA, fake_cuda::device_of(data)}; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  long versionCuDNN() const override { return fake_cuda::kCudnnVersion; }
  long versionRuntimeCuDNN() const override { return fake_cuda::kCudnnVersion; }
  int getNumGPUs() const override { return fake_cuda::kDevices; }
  void deviceSynchronize(c10::DeviceIndex) const override { fake_cuda::count_synchronisation("device"); }
};

namespace at {
REGISTER_CUDA_HOOKS(CUDAHooks);
}

/// Enlarges small thread stacks. With LD_PRELOAD, libtorch puts 32 KB of thread-local data on the stack of every
/// thread. Node's signal thread has no larger stack than that, and would fail to start.
extern "C" __attribute__((visibility("default"))) int pthread_attr_setstacksize(pthread_attr_t* attributes,
                                                                                size_t bytes) {
  static const auto set =
      reinterpret_cast<int (*)(pthread_attr_t*, size_t)>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return set(attributes, std::max<size_t>(bytes, 256 << 10));
}
