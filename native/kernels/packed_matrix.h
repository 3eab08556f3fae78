#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// A constant matrix [outputs, depth] in the order in which the tiles read it.
struct PackedMatrix {
  at::Tensor panels;  // bfloat16: int32 [panels, depth / 2, kPanel]; float32 [panels, depth, kFloatPanel]
  int64_t outputs = 0;
};

/// weight [outputs, depth] on the CPU, any floating type, even depth, in bfloat16; where has_avx512() (cpu.h).
PackedMatrix pack(const at::Tensor& weight);
/// weight [outputs, depth], any floating type, in float32; to be multiplied by where has_float_tiles() (cpu.h).
PackedMatrix pack_floats(const at::Tensor& weight);

/// input [rows, depth] times the matrix transposed, finished by the epilogue. The pointers of `input` and
/// `epilogue` are those of row 0, output 0. Each output is summed in one fixed order, whatever the number of
/// rows and threads.
void matmul(const PackedMatrix& matrix, const TileInput& input, int64_t rows, const TileEpilogue& epilogue);
void matmul(const PackedMatrix& matrix, const FloatTileInput& input, int64_t rows, const FloatTileEpilogue& epilogue);

/// out [rows, outputs] = x [rows, depth] weight [outputs, depth]^T + bias: rows packed as it goes, for matrices
/// that adapters may change between calls. Contiguous bfloat16 CPU tensors; bias float32 or undefined.
void matmul_unpacked(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out);

#if defined(CARILLON_FLOAT_TILES)
/// The same of contiguous float32 x and out, and of a matrix stored in any form.
void matmul_unpacked(const at::Tensor& x, const StoredMatrix& weight, const at::Tensor& bias, at::Tensor& out);
#endif

}  // namespace carillon::kernels
