#pragma once
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// Storage of a weight: floating point, or codes of 8 or 4 bits.
enum class Quantization { kNone, kInt8, kInt4 };

/// A constant matrix [outputs, columns], stored as floating-point numbers or as codes. A code means the number
/// code * scale (8 bits) or code * scale + lowest (4 bits). The codes of a block are interleaved, so that vectors of
/// eight unpack them by shifts: the codes of numbers i, 8 + i, 16 + i and 24 + i are neighbours.
struct Matrix {
  at::Tensor data;    // [outputs, columns] floating or int8; 4 bits: uint8 [outputs, columns / 2], lower half first
  at::Tensor scales;  // float16: [outputs, blocks] of 8 bits, [outputs, blocks, 2] (scale, lowest) of 4; else undefined

  Matrix() = default;
  Matrix(at::Tensor dense) : data(std::move(dense)) {}  // NOLINT: a tensor is a matrix
  Matrix(at::Tensor codes, at::Tensor code_scales) : data(std::move(codes)), scales(std::move(code_scales)) {}

  Quantization quantization() const;
  bool is_quantized() const { return scales.defined(); }
  int64_t outputs() const { return data.size(0); }
  int64_t columns() const;

  /// View of rows first .. first + count - 1.
  Matrix rows(int64_t first, int64_t count) const;
  /// Returns the matrix as a tensor [outputs, columns] in `dtype`: a view if `dtype` is the stored type, else a copy.
  at::Tensor dense(at::ScalarType dtype) const;
  /// Returns the rows with the numbers `index` [...] as a tensor [..., columns] in `dtype`.
  at::Tensor gather(const at::Tensor& index, at::ScalarType dtype) const;
};

/// Quantizes weight [outputs, columns] on its device. Leaves it unchanged for kNone, and if the number of columns is
/// not a multiple of kCodeBlock. The codes of a block span the full range: with 8 bits the number of the largest
/// magnitude gets 127 or -127; with 4 bits the lowest number gets 0 and the highest 15.
Matrix quantize(const at::Tensor& weight, Quantization quantization);

/// Makes a matrix of codes [outputs, columns] that are not interleaved: int8, or uint8 below 16 for 4 bits. Scales as
/// in Matrix.
Matrix from_codes(const at::Tensor& codes, const at::Tensor& scales);

/// Concatenates the rows of matrices with equal numbers of columns, in the storage type with the most bits.
Matrix concatenate(const std::vector<Matrix>& parts);

/// Returns one view of several matrices that are adjacent in CPU memory, such as tensors in a mapped file. The view
/// keeps all matrices in memory. Its `data` is undefined if the matrices are not adjacent, differ in type or are
/// quantized.
Matrix view_adjacent(const std::vector<Matrix>& parts);

}  // namespace carillon::kernels
