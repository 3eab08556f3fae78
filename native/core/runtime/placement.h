#pragma once
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace carillon {

/// How the weights of projections are kept: in the placement's type; as they are stored where they are multiplied as fast
/// like that; or in codes of 8 or 4 bits (kernels/matrix.h).
enum class WeightForm { kDense, kStored, kInt8, kInt4 };

/// Where a model lives and the type its weights and activations have.
/// Schedules, sampler state, normalisation statistics and FSQ stay float32 whatever the type.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  WeightForm weights = WeightForm::kDense;
};

/// Resolves `device` (auto, cpu, cuda, cuda:N) and `dtype` (auto, float32, bfloat16).
/// auto: CUDA where it is present, else the CPU; bfloat16 on CUDA and on CPUs
/// that our kernels for it run on (kernels/cpu.h), else float32. `quantization`: none (kStored), int8 or int4. Throws kBadArgument for a device that is
/// not there and for unknown names.
Placement choose_placement(const std::string& device, const std::string& dtype,
                           const std::string& quantization = "none");

/// The wire name of a placement's dtype: float32 or bfloat16.
const char* dtype_name(at::ScalarType dtype);

}  // namespace carillon
