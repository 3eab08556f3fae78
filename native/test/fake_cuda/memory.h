#pragma once
#include <c10/core/Device.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace fake_cuda {

using c10::DeviceIndex;

/// Device memory. Device pointers are in an address range that the host cannot access. Kernels access the memory at
/// another address, so the range stays inaccessible on all threads. Allocates on the thread's current device. Throws
/// OutOfMemoryError beyond FAKE_CUDA_MEMORY_MB, and when a test requests it.
c10::DeviceAllocator& allocator();

/// Pinned host memory, from which copies are asynchronous.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* pointer);

/// Device of the memory at `pointer`, or -1.
DeviceIndex device_of(const void* pointer);

/// Address at which kernels access the bytes of a device pointer.
void* kernel_address(const void* pointer);

/// Peak number of bytes in use on the device.
size_t peak_bytes(DeviceIndex device);

}  // namespace fake_cuda
