#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// weight [outputs, depth], any floating type, as float tiles read it: float32 [ceil(outputs / kFloatPanel), depth,
/// kFloatPanel].
at::Tensor pack_floats(const at::Tensor& weight);

/// As matmul of linear.h, in float32, where has_float_tiles() (cpu.h). Each output is summed in one fixed order, whatever the number of rows and threads.
void matmul_floats(const at::Tensor& panels, int64_t outputs, const FloatTileInput& input, int64_t rows,
                   const FloatTileEpilogue& epilogue);

}  // namespace carillon::kernels
