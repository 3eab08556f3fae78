#include "core/runtime/placement.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include "core/runtime/error.h"

namespace carillon {

const char* dtype_name(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bfloat16" : "float32"; }

bool cpu_has_bfloat16() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

namespace {

at::Device choose_device(const std::string& device) {
  if (device == "auto" || device.empty()) return at::hasCUDA() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (device == "cpu") return at::kCPU;
  const bool cuda = device == "cuda" || (device.rfind("cuda:", 0) == 0 && device.size() > 5 &&
                                         device.find_first_not_of("0123456789", 5) == std::string::npos);
  if (!cuda) fail(ErrorCode::kBadArgument, "unknown device '" + device + "': use auto, cpu, cuda or cuda:N");
  if (!at::hasCUDA()) {
    fail(ErrorCode::kBadArgument, "device '" + device + "' was asked for, but this libtorch sees no CUDA device");
  }
  const int index = device == "cuda" ? 0 : std::stoi(device.substr(5));
  const int count = static_cast<int>(at::getNumGPUs());
  if (index >= count) {
    fail(ErrorCode::kBadArgument, "device '" + device + "' was asked for, but there are only " + std::to_string(count));
  }
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace

Placement choose_placement(const std::string& device, const std::string& dtype) {
  Placement placement;
  placement.device = choose_device(device);
  if (dtype == "float32") {
    placement.dtype = at::kFloat;
  } else if (dtype == "bfloat16") {
    placement.dtype = at::kBFloat16;
  } else if (dtype == "auto" || dtype.empty()) {
    placement.dtype = placement.device.is_cuda() || cpu_has_bfloat16() ? at::kBFloat16 : at::kFloat;
  } else {
    fail(ErrorCode::kBadArgument, "unknown dtype '" + dtype + "': use auto, float32 or bfloat16");
  }
  return placement;
}

std::vector<DeviceInfo> list_devices() {
  const int64_t cpu_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  std::vector<DeviceInfo> devices;
  devices.push_back({"cpu", std::to_string(at::get_num_threads()) + " threads", cpu_bytes});
  if (!at::hasCUDA()) return devices;
  for (size_t index = 0; index < at::getNumGPUs(); ++index) {
    const auto memory = at::accelerator::getMemoryInfo(static_cast<c10::DeviceIndex>(index));
    devices.push_back({"cuda:" + std::to_string(index), "NVIDIA GPU", static_cast<int64_t>(memory.second)});
  }
  return devices;
}

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace carillon
