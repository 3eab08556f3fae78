#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/tile.h"

namespace carillon::kernels {

/// A constant bfloat16 matrix [outputs, depth] in the order in which the tiles read it.
struct PackedMatrix {
  at::Tensor panels;  // int32 [ceil(outputs / kPanel), words, kPanel]
  int64_t outputs = 0;
};

/// weight [outputs, depth] on the CPU, any floating type, even depth. Packed matrices need has_avx512() (cpu.h).
PackedMatrix pack(const at::Tensor& weight);

/// input [rows, depth] times the matrix transposed, finished by the epilogue. The pointers of `input` and
/// `epilogue` are those of row 0, output 0. Each output is summed in one fixed order, whatever the number of
/// rows and threads.
void matmul(const PackedMatrix& matrix, const TileInput& input, int64_t rows, const TileEpilogue& epilogue);

/// out [rows, outputs] = x [rows, depth] weight [outputs, depth]^T + bias: rows packed as it goes, for matrices
/// that adapters may change between calls. Contiguous bfloat16 CPU tensors; bias float32 or undefined.
void matmul_unpacked(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out);

}  // namespace carillon::kernels
