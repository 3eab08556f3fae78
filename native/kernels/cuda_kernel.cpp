#include "kernels/cuda_kernel.h"

#include <ATen/ATen.h>
#include <ATen/DynamicLibrary.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <string>

namespace carillon::kernels {
namespace {

/// Functions of NVRTC and of the CUDA driver. libtorch loads both libraries to compile its own kernels at run time.
struct Cuda {
  using Program = void*;
  int (*nvrtcCreateProgram)(Program*, const char* source, const char* name, int, const char* const*,
                            const char* const*);
  int (*nvrtcCompileProgram)(Program, int options, const char* const*);
  int (*nvrtcGetProgramLogSize)(Program, size_t*);
  int (*nvrtcGetProgramLog)(Program, char*);
  int (*nvrtcGetCUBINSize)(Program, size_t*);
  int (*nvrtcGetCUBIN)(Program, char*);
  int (*nvrtcDestroyProgram)(Program*);
  int (*cuDeviceGetAttribute)(int*, int attribute, int device);
  int (*cuCtxGetCurrent)(void**);
  int (*cuModuleLoadData)(void**, const void*);
  int (*cuModuleGetFunction)(void**, void*, const char*);
  int (*cuLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                        void* stream, void** arguments, void** extra);

  /// Returns the functions, or null if this libtorch lacks one of them.
  static const Cuda* get() {
    static const Cuda* const all = load();
    return all;
  }

 private:
  static const Cuda* load() try {
    // Use libtorch's loader, because dlopen would require a newer glibc than release packages may require.
    at::DynamicLibrary library("libcaffe2_nvrtc.so", nullptr, /*leak_handle=*/true);
    auto* const cuda = new Cuda;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.sym(name));
    };
    find(cuda->nvrtcCreateProgram, "nvrtcCreateProgram");
    find(cuda->nvrtcCompileProgram, "nvrtcCompileProgram");
    find(cuda->nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
    find(cuda->nvrtcGetProgramLog, "nvrtcGetProgramLog");
    find(cuda->nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
    find(cuda->nvrtcGetCUBIN, "nvrtcGetCUBIN");
    find(cuda->nvrtcDestroyProgram, "nvrtcDestroyProgram");
    find(cuda->cuDeviceGetAttribute, "cuDeviceGetAttribute");
    find(cuda->cuCtxGetCurrent, "cuCtxGetCurrent");
    find(cuda->cuModuleLoadData, "cuModuleLoadData");
    find(cuda->cuModuleGetFunction, "cuModuleGetFunction");
    find(cuda->cuLaunchKernel, "cuLaunchKernel");
    return cuda;
  } catch (const c10::Error&) {
    return nullptr;
  }
};

/// Machine code for the GPU; empty if compilation fails.
std::string compile_for(const Cuda& cuda, const char* source, const char* name, int device) {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  int major = 0, minor = 0;
  cuda.cuDeviceGetAttribute(&major, kMajor, device);
  cuda.cuDeviceGetAttribute(&minor, kMinor, device);
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
  const char* const options[] = {architecture.c_str()};
  Cuda::Program program = nullptr;
  if (cuda.nvrtcCreateProgram(&program, source, name, 0, nullptr, nullptr) != 0) return {};
  std::string code;
  size_t size = 0;
  if (cuda.nvrtcCompileProgram(program, 1, options) == 0 && cuda.nvrtcGetCUBINSize(program, &size) == 0) {
    code.resize(size);
    if (cuda.nvrtcGetCUBIN(program, code.data()) != 0) code.clear();
  } else if (cuda.nvrtcGetProgramLogSize(program, &size) == 0) {
    std::string log(size, ' ');
    cuda.nvrtcGetProgramLog(program, log.data());
    TORCH_WARN("the kernel ", name, " cannot be compiled for this GPU; libtorch's kernels are used instead: ", log);
  }
  cuda.nvrtcDestroyProgram(&program);
  return code;
}

}  // namespace

std::unique_ptr<CudaKernel> CudaKernel::compile(const char* source, const char* name, const c10::Device& device) {
  const Cuda* const cuda = Cuda::get();
  if (cuda == nullptr) return nullptr;
  const c10::DeviceGuard guard(device);
  void *context = nullptr, *module = nullptr, *function = nullptr;
  at::zeros({1}, device);  // makes libtorch's CUDA context current in this thread
  if (cuda->cuCtxGetCurrent(&context) != 0 || context == nullptr) return nullptr;
  const std::string code = compile_for(*cuda, source, name, device.index());
  if (code.empty() || cuda->cuModuleLoadData(&module, code.data()) != 0) return nullptr;
  if (cuda->cuModuleGetFunction(&function, module, name) != 0) return nullptr;
  return std::unique_ptr<CudaKernel>(new CudaKernel(function));
}

void CudaKernel::launch(const c10::Device& device, uint32_t blocks_x, uint32_t blocks_y, uint32_t threads,
                        std::span<void*> arguments) const {
  const c10::DeviceGuard guard(device);
  const c10::impl::VirtualGuardImpl streams(device.type());
  void* const stream = streams.getStreamNativeHandle(streams.getStream(device));
  const int status = Cuda::get()->cuLaunchKernel(function_, blocks_x, blocks_y, 1, threads, 1, 1, 0, stream,
                                                 arguments.data(), nullptr);
  TORCH_CHECK(status == 0, "CUDA error: launching a kernel failed with status ", status);
}

}  // namespace carillon::kernels
