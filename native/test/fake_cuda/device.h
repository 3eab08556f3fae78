#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace fake_cuda {

using c10::DeviceIndex;

DeviceIndex device_count();
/// Current device of the calling thread.
DeviceIndex current_device();
/// Whether the calling thread launches on its own stream instead of the default stream.
bool has_own_stream();
/// CPU generator that replaces a device generator. Its numbers differ from a GPU's.
at::Generator host_generator(const at::Generator& device_generator);

}  // namespace fake_cuda
