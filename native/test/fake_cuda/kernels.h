#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace fake_cuda {

/// A CPU tensor on the memory of a device tensor, for CPU kernels; CPU tensors are returned unchanged.
at::Tensor host_alias(const at::Tensor& tensor);

/// Copies the CPU result of a kernel to the device; device tensors are returned unchanged.
at::Tensor to_device(const at::Tensor& host, c10::DeviceIndex device);

}  // namespace fake_cuda
