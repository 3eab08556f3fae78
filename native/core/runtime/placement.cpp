#include "core/runtime/placement.h"

#include "core/runtime/device.h"
#include "core/runtime/error.h"
#include "kernels/cpu.h"

namespace carillon {

const char* dtype_name(at::ScalarType dtype) { return dtype == at::kBFloat16 ? "bfloat16" : "float32"; }

Placement choose_placement(const std::string& device, const std::string& dtype, const std::string& quantization) {
  Placement placement;
  placement.device = choose_device(device);
  if (dtype == "float32") {
    placement.dtype = at::kFloat;
  } else if (dtype == "bfloat16") {
    placement.dtype = at::kBFloat16;
  } else if (dtype == "auto" || dtype.empty()) {
    placement.dtype = placement.device.is_cuda() || kernels::has_avx512() ? at::kBFloat16 : at::kFloat;
  } else {
    fail(ErrorCode::kBadArgument, "unknown dtype '" + dtype + "': use auto, float32 or bfloat16");
  }
  if (quantization == "int8") {
    placement.weights = WeightForm::kInt8;
  } else if (quantization == "int4") {
    placement.weights = WeightForm::kInt4;
  } else if (quantization == "none") {
    placement.weights = WeightForm::kStored;
  } else {
    fail(ErrorCode::kBadArgument, "unknown quantization '" + quantization + "': use none, int8 or int4");
  }
  return placement;
}

}  // namespace carillon
