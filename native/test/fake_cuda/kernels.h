#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace fake_cuda {

/// The same bytes as a host tensor, for libtorch's CPU kernels; a tensor of the host as it is.
at::Tensor host_alias(const at::Tensor& tensor);

/// A copy on the device of what a CPU kernel put into host memory; a tensor of the device as it is.
at::Tensor to_device(const at::Tensor& host, c10::DeviceIndex device);

}  // namespace fake_cuda
