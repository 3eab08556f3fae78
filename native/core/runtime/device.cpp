#include "core/runtime/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>

#include "core/runtime/error.h"
#include "kernels/cpu.h"

namespace carillon {
namespace {

/// GPUs that this process uses. Querying any other GPU would allocate memory on it.
std::vector<c10::DeviceIndex> devices_in_use() {
  std::vector<c10::DeviceIndex> devices;
  if (!at::hasCUDA()) return devices;
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(at::kCUDA);
  for (size_t index = 0; index < at::getNumGPUs(); ++index) {
    const auto device = static_cast<c10::DeviceIndex>(index);
    if (hooks.hasPrimaryContext(device)) devices.push_back(device);
  }
  return devices;
}

std::string name_of(c10::DeviceIndex index) { return at::Device(at::kCUDA, index).str(); }

void configure_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto& context = at::globalContext();
    // cuDNN's attention would build a plan for each key length (0.1 s on Hopper), so once per token.
    context.setSDPUseCuDNN(false);
    // Makes cuDNN deterministic, and turns off TensorFloat-32.
    context.setDeterministicCuDNN(true);
    context.setBenchmarkCuDNN(false);
    context.setAllowTF32CuDNN(false);
  });
}

bool is_auto(const std::string& device) { return device == "auto" || device.empty(); }

/// Whether `device` is cuda:N. N has at most three digits.
bool has_index(const std::string& device) {
  return device.starts_with("cuda:") && device.size() > 5 && device.size() <= 8 &&
         device.find_first_not_of("0123456789", 5) == std::string::npos;
}

at::Device choose_device(const std::string& device) {
  check_device_name(device);
  if (device == "cpu" || (is_auto(device) && !at::hasCUDA())) return at::kCPU;
  if (!at::hasCUDA()) {
    fail(ErrorCode::kBadArgument, "device '" + device + "' is not available: this libtorch sees no CUDA device");
  }
  const int index = has_index(device) ? std::stoi(device.substr(5)) : 0;
  const int count = static_cast<int>(at::getNumGPUs());
  if (index >= count) {
    fail(ErrorCode::kBadArgument,
         "device '" + device + "' does not exist: the number of GPUs is " + std::to_string(count));
  }
  configure_kernels();
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace

void check_device_name(const std::string& device) {
  require(device == "cpu" || device == "cuda" || is_auto(device) || has_index(device),
          "unknown device '" + device + "': use auto, cpu, cuda or cuda:N");
}

Placement choose_placement(const std::string& device, const std::string& dtype, const std::string& quantization) {
  Placement placement;
  placement.device = choose_device(device);
  if (dtype == "float32") {
    placement.dtype = at::kFloat;
  } else if (dtype == "bfloat16") {
    placement.dtype = at::kBFloat16;
  } else if (dtype == "auto" || dtype.empty()) {
    placement.dtype = placement.device.is_cuda() || kernels::has_avx512() ? at::kBFloat16 : at::kFloat;
  } else {
    fail(ErrorCode::kBadArgument, "unknown dtype '" + dtype + "': use auto, float32 or bfloat16");
  }
  if (quantization == "int8") {
    placement.weights = WeightForm::kInt8;
  } else if (quantization == "int4") {
    placement.weights = WeightForm::kInt4;
  } else if (quantization == "none") {
    placement.weights = WeightForm::kStored;
  } else {
    fail(ErrorCode::kBadArgument, "unknown quantization '" + quantization + "': use none, int8 or int4");
  }
  return placement;
}

const char* dtype_name(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bfloat16" : "float32"; }

void use_own_stream(const at::Device& device, bool is_urgent) {
  thread_local std::set<c10::DeviceIndex> provided;
  if (!device.is_cuda() || !provided.insert(device.index()).second) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.exchangeStream(guard.getStreamFromGlobalPool(device, is_urgent));
}

namespace {

/// Two pinned buffers through which a thread copies data to a GPU.
class Staging {
 public:
  /// Copies contiguous bytes to the GPU tensor `target` (uint8 [n]) on the thread's current stream.
  void send(const char* bytes, const at::Tensor& target) {
    for (int64_t done = 0; done < target.numel();) {
      if (used_ == kBytes) swap_buffers(target.device());
      at::Tensor& buffer = buffers_[current_];
      if (!buffer.defined()) buffer = at::empty({kBytes}, at::TensorOptions(at::kByte).pinned_memory(true));
      const int64_t count = std::min(target.numel() - done, kBytes - used_);
      auto* const to = buffer.mutable_data_ptr<uint8_t>() + used_;
      at::parallel_for(0, count, kBytesPerTask, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, bytes + done + begin, static_cast<size_t>(end - begin));
      });
      target.narrow(0, done, count).copy_(buffer.narrow(0, used_, count), /*non_blocking=*/true);
      done += count;
      used_ = std::min(kBytes, (used_ + count + kAlignment - 1) / kAlignment * kAlignment);
    }
  }

 private:
  static constexpr int64_t kBytes = 16 << 20, kBytesPerTask = 1 << 20, kAlignment = 64;

  /// Switches to the other buffer once its transfer is complete.
  void swap_buffers(const at::Device& device) {
    sent_[current_].emplace(device.type());
    sent_[current_]->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    current_ = 1 - current_;
    used_ = 0;
    if (sent_[current_]) sent_[current_]->synchronize();
  }

  std::array<at::Tensor, 2> buffers_;
  std::array<std::optional<c10::Event>, 2> sent_;
  size_t current_ = 0;
  int64_t used_ = 0;
};

}  // namespace

at::Tensor upload(const at::Tensor& host, const at::Device& device) {
  if (!host.is_cpu() || !device.is_cuda()) return host.to(device);
  thread_local auto* const staging = new Staging;  // never freed: CUDA may be unloaded when a thread ends
  const at::Tensor source = host.contiguous();
  at::Tensor target = at::empty(source.sizes(), source.options().device(device));
  if (source.numel() > 0)
    staging->send(static_cast<const char*>(source.const_data_ptr()), target.view({-1}).view(at::kByte));
  return target;
}

namespace {

int64_t host_memory() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  int64_t limit = 0;  // the container's limit; stays 0 if the file is missing or contains "max"
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;
  return limit > 0 ? std::min(limit, physical) : physical;
}

}  // namespace

int64_t available_memory(const at::Device& device) {
  if (!device.is_cuda()) return host_memory();
  const c10::DeviceGuard guard(device);
  at::accelerator::emptyCache();
  return static_cast<int64_t>(at::accelerator::getMemoryInfo(device.index()).first);
}

std::vector<DeviceInfo> list_devices() {
  const int64_t cpu_bytes = host_memory();
  std::vector<DeviceInfo> devices;
  devices.push_back({"cpu", std::to_string(at::get_num_threads()) + " threads", cpu_bytes});
  const size_t count = at::hasCUDA() ? at::getNumGPUs() : 0;
  for (size_t index = 0; index < count; ++index) {
    devices.push_back({name_of(static_cast<c10::DeviceIndex>(index)), "NVIDIA GPU", 0});
  }
  for (const auto index : devices_in_use()) {
    const auto [free_bytes, bytes] = at::accelerator::getMemoryInfo(index);
    devices[static_cast<size_t>(index) + 1].memory_bytes = static_cast<int64_t>(bytes);
  }
  return devices;
}

void release_cached_memory() {
  if (!devices_in_use().empty()) at::accelerator::emptyCache();
}

bool is_device_lost() {
  try {
    for (const auto index : devices_in_use()) at::accelerator::synchronizeDevice(index);
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

std::string describe_free_memory() {
  std::string text;
  for (const auto index : devices_in_use()) {
    const auto [free_bytes, bytes] = at::accelerator::getMemoryInfo(index);
    char line[80];
    std::snprintf(line, sizeof line, "%s has %.1f of %.1f GB free", name_of(index).c_str(),
                  static_cast<double>(free_bytes) / 1e9, static_cast<double>(bytes) / 1e9);
    text += (text.empty() ? "" : ", ") + std::string(line);
  }
  return text;
}

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace carillon
