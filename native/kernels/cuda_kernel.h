#pragma once
#include <c10/core/Device.h>

#include <memory>
#include <span>

namespace carillon::kernels {

/// One of our GPU kernels, compiled at run time by the NVRTC in libtorch's wheel, so that builds need no CUDA.
class CudaKernel {
 public:
  /// Compiles the `extern "C"` kernel `name` of `source` for the generation of `device`. Null without NVRTC; null with
  /// a logged warning if compilation fails.
  static std::unique_ptr<CudaKernel> compile(const char* source, const char* name, const c10::Device& device);

  /// Launches on the thread's current stream of `device`; `arguments` point to the kernel's arguments.
  void launch(const c10::Device& device, uint32_t blocks_x, uint32_t blocks_y, uint32_t threads,
              std::span<void*> arguments) const;

 private:
  explicit CudaKernel(void* function) : function_(function) {}
  void* function_;  // CUfunction, loaded for the life of the process
};

}  // namespace carillon::kernels
