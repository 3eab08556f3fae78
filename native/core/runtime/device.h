#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace carillon {

/// How the weights of projections are stored.
/// - kDense: in the placement's dtype.
/// - kStored: in the dtype of the checkpoint file, unless this would make products slower; then like kDense.
/// - kInt8, kInt4: as 8-bit or 4-bit codes (kernels/matrix.h).
enum class WeightForm { kDense, kStored, kInt8, kInt4 };

/// Device of a model, and dtype of its weights and activations. Schedules, sampler state, normalisation statistics and
/// FSQ are always float32.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  WeightForm weights = WeightForm::kDense;
};

/// Throws kBadArgument unless `device` is auto, cpu, cuda or cuda:N. The device may be missing.
void check_device_name(const std::string& device);

/// Parses the names of a placement. The first call with a GPU also chooses the kernels that libtorch uses on GPUs.
/// - `device`: cpu, cuda, cuda:N, or auto (the first GPU if there is one).
/// - `dtype`: float32, bfloat16, or auto (bfloat16 on GPUs and on CPUs with has_avx512() of kernels/cpu.h).
/// - `quantization`: none (kStored), int8 or int4.
/// Throws kBadArgument for a missing device or an unknown name.
Placement choose_placement(const std::string& device, const std::string& dtype,
                           const std::string& quantization = "none");

/// The wire name of a placement's dtype: float32 or bfloat16.
const char* dtype_name(at::ScalarType dtype);

/// Gives the calling thread its own GPU stream, so that it does not wait for other threads. Urgent streams have
/// priority. Does nothing for a CPU, or if the thread already has a stream on the device.
void use_own_stream(const at::Device& device, bool is_urgent);

/// Copies a host tensor to `device`. Returns a tensor that is already there unchanged. Each thread has two pinned
/// buffers for copies to a GPU: one is filled while the other is transferred. Copies do not wait for running kernels.
at::Tensor upload(const at::Tensor& host, const at::Device& device);

struct DeviceInfo {
  std::string name;  // cpu, cuda:0, ...; choose_placement accepts it as `device`
  std::string description;
  int64_t memory_bytes;  // total; 0 if unknown
};

/// The devices of this machine that libtorch can use, the CPU first. Takes no memory on a GPU that is not in use.
std::vector<DeviceInfo> list_devices();

/// Memory of `device` in bytes. GPU: the free memory. CPU: the total memory of the machine, or the limit of the
/// container if that is lower.
int64_t available_memory(const at::Device& device);

/// Releases libtorch's cache of freed GPU memory.
void release_cached_memory();

/// Whether a GPU in use has failed permanently: all further calls to it fail in this process.
bool is_device_lost();

/// Free memory of the GPUs in use as text: "cuda:0 has 0.3 of 24.0 GB free"; empty without GPUs.
std::string describe_free_memory();

/// The version of the libtorch in use, for example "2.13.0".
std::string libtorch_version();

}  // namespace carillon
