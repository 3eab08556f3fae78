#include "core/runtime/devices.h"

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

namespace carillon {

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
