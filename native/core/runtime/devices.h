#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace carillon {

struct DeviceInfo {
  std::string name;  // what `device` may be set to: cpu, cuda:0, ...
  std::string description;
  int64_t memory_bytes;  // in all, 0 where it cannot be told
};

/// The devices of this machine that libtorch can use, the CPU first.
std::vector<DeviceInfo> list_devices();

/// The version of the libtorch in use, for example "2.13.0".
std::string libtorch_version();

}  // namespace carillon
