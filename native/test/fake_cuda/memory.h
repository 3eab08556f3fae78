#pragma once
#include <c10/core/Device.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace fake_cuda {

using c10::DeviceIndex;

/// Allocates memory on the thread's current device. The host cannot access the addresses of device pointers: kernels
/// access the same memory at other addresses. Throws OutOfMemoryError beyond FAKE_CUDA_MEMORY_MB, and when a test
/// requests it.
c10::DeviceAllocator& allocator();

/// Allocates pinned host memory. Copies from it are asynchronous.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* pointer);

/// Device of the memory at `pointer`, or -1.
DeviceIndex device_of(const void* pointer);

/// Converts a device pointer to the address that kernels use.
void* kernel_address(const void* pointer);

/// Peak number of bytes in use on the device.
size_t peak_bytes(DeviceIndex device);

}  // namespace fake_cuda
