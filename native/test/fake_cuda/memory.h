#pragma once
#include <c10/core/Device.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace fake_cuda {

using c10::DeviceIndex;

/// Memory of the devices. A device pointer lies in a range of addresses without any access; kernels reach the same
/// bytes at another address, so nothing is ever unprotected, on any thread. Allocates on the thread's current device.
/// Throws OutOfMemoryError beyond FAKE_CUDA_MEMORY_MB, and where a test asks for it.
c10::DeviceAllocator& allocator();

/// Memory of the host that a device copies from without the host's waiting.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* pointer);

/// The device whose memory `pointer` lies in, or -1.
DeviceIndex device_of(const void* pointer);

/// Where kernels find the bytes of a device pointer.
void* kernel_address(const void* pointer);

/// The most bytes that were ever in use on the device.
size_t peak_bytes(DeviceIndex device);

}  // namespace fake_cuda
