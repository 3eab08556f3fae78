/// Factories, views and copies of device tensors.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include <cstring>

#include "counters.h"
#include "graph.h"
#include "kernels.h"
#include "memory.h"

namespace fake_cuda {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device> device, std::optional<bool>,
                               std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys, c10::dtype_or_default(dtype));
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  const size_t before = self.storage().nbytes();
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(size)) * self.element_size();
  if (bytes > before) {
    const c10::DeviceGuard guard(self.device());
    c10::DataPtr larger = allocator().allocate(bytes);
    if (before > 0) std::memcpy(kernel_address(larger.get()), kernel_address(self.storage().data()), before);
    self.storage().set_data_ptr_noswap(std::move(larger));
    self.storage().set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

/// Copies from pageable memory synchronise even with `non_blocking`. Conversions of dtype and layout run on the host.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source) || self.numel() == 0) return self;
  if (!source.is_cuda() || !self.is_cuda()) refuse_in_graph("a copy from or to the host");
  if (!source.is_cuda()) {
    count_copy_to_device("copy", source.nbytes());
    if (!non_blocking || !source.is_pinned()) count_synchronisation("copy to device");
    host_alias(self).copy_(source);
  } else if (!self.is_cuda()) {
    count_copy_to_host("copy", source.nbytes());
    if (!non_blocking) count_synchronisation("copy to host");
    self.copy_(host_alias(source));
  } else {
    count_launch("aten::copy_");
    const auto copy = [self, source] { host_alias(self).copy_(host_alias(source)); };
    if (is_capturing()) {
      note_overwritten(self);
      note_launch(copy, {});
    }
    copy();
  }
  return self;
}

at::Scalar local_scalar(const at::Tensor& self) {
  count_copy_to_host("item", self.element_size());
  count_synchronisation("item");
  return host_alias(self).item();
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty_memory_format);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("copy_", &copy_);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("as_strided", [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                                std::optional<int64_t> offset) {
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
  });
  library.impl("view", [](const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); });
  library.impl("_reshape_alias", [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
    return at::native::_reshape_alias(self, size, stride);
  });
  library.impl("unfold", [](const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
    return at::native::unfold(self, dimension, size, step);
  });
  library.impl("view_as_real", [](const at::Tensor& self) { return at::native::view_as_real(self); });
  library.impl("view_as_complex", [](const at::Tensor& self) { return at::native::view_as_complex(self); });
}

}  // namespace
}  // namespace fake_cuda
