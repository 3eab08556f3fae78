#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// A constant matrix [outputs, columns], packed in the order in which tiles read it.
struct PackedMatrix {
  /// Pairs of bfloat16 or of 16-bit integers: int32 [panels, columns / 2, kPanel]; float32 [panels, columns,
  /// kFloatPanel].
  at::Tensor panels;
  int64_t outputs = 0;
  at::Tensor scales = {};  // of integers: float32 [outputs]
};

/// Packs weight [outputs, columns] as bfloat16. `weight` is a CPU tensor of any floating type with an even number of
/// columns. Requires has_avx512() (cpu.h).
PackedMatrix pack(const at::Tensor& weight);
/// Packs weight [outputs, columns] as integers of 14 bits with a scale per output. The number of columns is a multiple
/// of kCodeBlock. Requires has_avx512().
PackedMatrix pack_fixed(const at::Tensor& weight);
/// Rounds each row of x [..., numbers] to integers of 14 bits, int16, and returns them with scales [..., 1].
std::pair<at::Tensor, at::Tensor> round_fixed(const at::Tensor& x);
/// Packs weight [outputs, columns] of any floating type as float32. Products with the packed matrix require
/// has_float_tiles() (cpu.h).
PackedMatrix pack_floats(const at::Tensor& weight);

/// Multiplies input [rows, columns] by the transposed matrix and applies the epilogue. The pointers in `input` and
/// `epilogue` point to row 0, output 0. The order of summation does not depend on the number of rows or threads.
void matmul(const PackedMatrix& matrix, const TileInput& input, int64_t rows, const TileEpilogue& epilogue);
void matmul(const PackedMatrix& matrix, const FixedTileInput& input, int64_t rows, const FixedTileEpilogue& epilogue);
void matmul(const PackedMatrix& matrix, const FloatTileInput& input, int64_t rows, const FloatTileEpilogue& epilogue);

/// Computes out [rows, outputs] = x [rows, columns] * weight [outputs, columns]^T + bias. Packs the rows of the weight
/// during the product, because adapters may change the weight between calls. x and out are contiguous CPU tensors: both
/// bfloat16 (requires has_avx512()) or both float32 (requires has_float_tiles()). The bias is float32 or undefined.
void matmul_unpacked(const at::Tensor& x, const StoredMatrix& weight, const at::Tensor& bias, at::Tensor& out);

}  // namespace carillon::kernels
