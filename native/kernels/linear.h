#pragma once
#include <ATen/core/Tensor.h>

#include "kernels/matrix.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// x [..., in] weight [out, in]^T + bias [out]: [..., out]; the bias may be undefined.
/// Hand-written ways on the CPU, which sum in float32: few rows stream the weight once (memory decides the time), be it
/// bfloat16 beside bfloat16 on a machine with AVX512-BF16, or bfloat16 and codes beside another type on one with AVX2
/// or NEON; more rows run through tiles, or through libtorch beside a part of the weight at a time. All else, and
/// whatever has to be differentiated, is linear_reference.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// The same by libtorch.
at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias);

/// Whether linear() multiplies a stored weight by inputs of `dtype` on `device` as fast as one of that type.
bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device);

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
