#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace fake_cuda {

/// Returns a CPU tensor that shares the memory of a device tensor, so that CPU kernels can use it. Returns CPU tensors
/// unchanged.
at::Tensor host_alias(const at::Tensor& tensor);

/// Copies the CPU result of a kernel to the device. Returns device tensors unchanged.
at::Tensor to_device(const at::Tensor& host, c10::DeviceIndex device);

}  // namespace fake_cuda
