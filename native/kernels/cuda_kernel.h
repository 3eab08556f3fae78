#pragma once
#include <c10/core/Device.h>

#include <memory>
#include <span>

namespace carillon::kernels {

/// A kernel of ours for a GPU, made there and then from its source by the NVRTC that libtorch's wheel brings: no CUDA is
/// needed where the engine is built.
class CudaKernel {
 public:
  /// The `extern "C"` kernel `name` of `source`, for the generation of `device`. Null where there is no NVRTC, or where it
  /// refuses the source, which a warning tells.
  static std::unique_ptr<CudaKernel> compile(const char* source, const char* name, const c10::Device& device);

  /// On the thread's current stream of `device`; `arguments` point to the kernel's arguments.
  void launch(const c10::Device& device, uint32_t blocks_x, uint32_t blocks_y, uint32_t threads,
              std::span<void*> arguments) const;

 private:
  explicit CudaKernel(void* function) : function_(function) {}
  void* function_;  // CUfunction, loaded for the life of the process
};

}  // namespace carillon::kernels
