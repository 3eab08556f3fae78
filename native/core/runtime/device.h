#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace carillon {

/// How the weights of projections are kept: in the placement's type; as they are stored where they are multiplied as
/// fast like that; or in codes of 8 or 4 bits (kernels/matrix.h).
enum class WeightForm { kDense, kStored, kInt8, kInt4 };

/// Where a model lives and the type its weights and activations have.
/// Schedules, sampler state, normalisation statistics and FSQ stay float32 whatever the type.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  WeightForm weights = WeightForm::kDense;
};

/// `device`: cpu, cuda, cuda:N or auto, the first GPU where there is one. The first time that it is a GPU, this settles
/// how kernels are chosen there. `dtype`: float32, bfloat16 or auto, which is bfloat16 on GPUs and on CPUs that our
/// kernels for it run on (kernels/cpu.h). `quantization`: none (kStored), int8 or int4. Throws kBadArgument for a
/// device that is not there and for unknown names.
Placement choose_placement(const std::string& device, const std::string& dtype,
                           const std::string& quantization = "none");

/// The wire name of a placement's dtype: float32 or bfloat16.
const char* dtype_name(at::ScalarType dtype);

/// Gives the calling thread a stream of its own on a GPU, so that what other threads launch there is not waited for.
/// Urgent work goes ahead of theirs. Once per thread and device; nothing on a CPU.
void use_own_stream(const at::Device& device, bool is_urgent);

/// A tensor of the host's on `device`; one that is there already as it is. To a GPU it goes through two pinned buffers
/// of the thread, one being filled while the other travels, so that nobody waits for what the GPU does just then.
at::Tensor upload(const at::Tensor& host, const at::Device& device);

struct DeviceInfo {
  std::string name;  // what `device` may be set to: cpu, cuda:0, ...
  std::string description;
  int64_t memory_bytes;  // in all, 0 where it cannot be told
};

/// The devices of this machine that libtorch can use, the CPU first. Takes no memory on a GPU that is not in use.
std::vector<DeviceInfo> list_devices();

/// What can be had on `device`: the free memory of a GPU, or all that the machine or its container lets a process have.
int64_t available_memory(const at::Device& device);

/// Gives back to the GPUs what libtorch keeps of freed memory.
void release_cached_memory();

/// Whether a GPU in use has failed for good: then no call to it succeeds for the rest of the process.
bool is_device_lost();

/// The free memory of the GPUs in use, as "cuda:0 has 0.3 of 24.0 GB free"; empty where there are none.
std::string free_memory();

/// The version of the libtorch in use, for example "2.13.0".
std::string libtorch_version();

}  // namespace carillon
