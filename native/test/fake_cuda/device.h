#pragma once
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace fake_cuda {

using c10::DeviceIndex;

DeviceIndex device_count();
/// Of the calling thread.
DeviceIndex current_device();
/// Whether the calling thread launches on a stream of its own, not on the one that all others share.
bool has_own_stream();
/// The host's generator that draws in place of a device's. Its numbers are not a GPU's.
at::Generator host_generator(const at::Generator& device_generator);

}  // namespace fake_cuda
