#include "kernels/snake_cuda.h"

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/cuda_kernel.h"
#include "kernels/snake.h"

namespace carillon::kernels {
namespace {

constexpr uint32_t kThreads = 256, kPerThread = 8, kMostRows = 65535;

/// Each block computes kThreads * kPerThread consecutive elements of one row [T]. There are B * C rows.
constexpr const char* kSource = R"cuda(
#ifdef IS_BFLOAT16
typedef unsigned short Element;
__device__ float widened(Element x) { return __uint_as_float((unsigned)x << 16); }
__device__ Element narrowed(float x) {
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;  // NaN
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // round to nearest even
}
#else
typedef float Element;
__device__ float widened(Element x) { return x; }
__device__ Element narrowed(float x) { return x; }
#endif

extern "C" __global__ void snake_pass(const Element* y, const Element* bias, const Element* residual,
                                      const float* frequency, const float* gain, Element* plain, Element* snaked,
                                      long long length, int channels, int first_row) {
  const int row = first_row + blockIdx.y, channel = row % channels;
  const float offset = bias ? widened(bias[channel]) : 0.0f, f = frequency[channel], g = gain[channel];
  const long long from = row * length;
  long long i = (long long)blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x;
#pragma unroll
  for (int step = 0; step < PER_THREAD; ++step, i += THREADS) {
    if (i >= length) return;
    float x = widened(y[from + i]) + offset;
    if (residual) x += widened(residual[from + i]);
    const Element kept = narrowed(x);
    if (plain) plain[from + i] = kept;
    x = widened(kept);
    const float wave = sinf(x * f);
    snaked[from + i] = narrowed(wave * wave * g + x);
  }
}
)cuda";

std::unique_ptr<CudaKernel> compile(const at::Device& device, at::ScalarType dtype) {
  const std::string source = "#define THREADS " + std::to_string(kThreads) + "\n#define PER_THREAD " +
                             std::to_string(kPerThread) + (dtype == at::kBFloat16 ? "\n#define IS_BFLOAT16" : "") +
                             kSource;
  return CudaKernel::compile(source.c_str(), "snake_pass", device);
}

SnakePassResult run(const CudaKernel& kernel, const at::Tensor& y, const SnakePass& pass) {
  SnakePassResult result{pass.keeps_plain ? at::empty_like(y) : at::Tensor(), at::empty_like(y)};
  const auto address = [](const at::Tensor& tensor) {
    return tensor.defined() ? const_cast<void*>(tensor.const_data_ptr()) : nullptr;
  };
  const at::Tensor residual = pass.residual.defined() ? pass.residual.contiguous() : at::Tensor();
  void *sums = address(y), *bias = address(pass.bias), *added = address(residual), *frequency = address(pass.frequency),
       *gain = address(pass.gain), *plain = address(result.plain), *snaked = address(result.snaked);
  long long length = y.size(2);
  int channels = static_cast<int>(y.size(1)), first_row = 0;
  void* arguments[] = {&sums, &bias, &added, &frequency, &gain, &plain, &snaked, &length, &channels, &first_row};
  const auto blocks = static_cast<uint32_t>((length + kThreads * kPerThread - 1) / (kThreads * kPerThread));
  const auto rows = static_cast<uint32_t>(y.size(0) * y.size(1));
  for (uint32_t row = 0; row < rows; row += kMostRows) {
    first_row = static_cast<int>(row);
    kernel.launch(y.device(), blocks, std::min(kMostRows, rows - row), kThreads, arguments);
  }
  return result;
}

/// Compares the kernel with snake() on whole and partial blocks, with and without the optional operands.
bool agrees_with_snake(const CudaKernel& kernel, const at::Device& device, at::ScalarType dtype) {
  const auto wide = at::TensorOptions(device).dtype(at::kFloat), narrow = wide.dtype(dtype);
  for (const int64_t length : {int64_t{5}, int64_t{2 * kThreads * kPerThread + 3}}) {
    const auto ramp = [&](int64_t count, double low, double high, at::IntArrayRef shape,
                          const at::TensorOptions& options) {
      return at::linspace(low, high, count, wide).view(shape).to(options.dtype());
    };
    const at::Tensor y = ramp(6 * length, -4, 5, {2, 3, length}, narrow),
                     residual = ramp(6 * length, 2, -1, {2, 3, length}, narrow);
    const at::Tensor bias = ramp(3, -1, 1, {3}, narrow), frequency = ramp(3, 0.5, 3, {3}, wide),
                     gain = ramp(3, 0.2, 2, {3}, wide);
    const auto near = [&](const at::Tensor& a, const at::Tensor& b) {
      const double limit = dtype == at::kFloat ? 1e-5 : 4e-2;
      return at::allclose(a.to(at::kFloat), b.to(at::kFloat), limit, limit);
    };
    const SnakePassResult bare = run(kernel, y, {{}, {}, frequency, gain, false});
    const SnakePassResult all = run(kernel, y, {bias, residual, frequency, gain, true});
    const at::Tensor plain = (y.to(at::kFloat) + bias.to(at::kFloat).view({3, 1}) + residual.to(at::kFloat)).to(dtype);
    if (!near(bare.snaked, snake(y, frequency, gain)) || !near(all.plain, plain)) return false;
    if (!near(all.snaked, snake(all.plain, frequency, gain))) return false;
  }
  return true;
}

/// The kernel for a device and type; null if libtorch's kernels are used instead.
const CudaKernel* kernel_for(const at::Device& device, at::ScalarType dtype) {
  static std::mutex mutex;
  static auto* const kernels = new std::map<std::pair<c10::DeviceIndex, at::ScalarType>, std::unique_ptr<CudaKernel>>;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = kernels->try_emplace({device.index(), dtype});
  if (is_new) {
    place->second = compile(device, dtype);
    if (place->second && !agrees_with_snake(*place->second, device, dtype)) {
      TORCH_WARN("the snake kernel compiled for this GPU disagrees with libtorch's kernels, which are used instead");
      place->second.reset();
    }
  }
  return place->second.get();
}

}  // namespace

bool has_snake_pass(const at::Device& device, at::ScalarType dtype) {
  return device.is_cuda() && (dtype == at::kFloat || dtype == at::kBFloat16) && kernel_for(device, dtype) != nullptr;
}

SnakePassResult run_snake_pass(const at::Tensor& y, const SnakePass& pass) {
  return run(*kernel_for(y.device(), y.scalar_type()), y.contiguous(), pass);
}

}  // namespace carillon::kernels
