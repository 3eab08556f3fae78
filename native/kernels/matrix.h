#pragma once
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {

/// How a weight is kept: as it is, or in codes of 8 or 4 bits.
enum class Quantization { kNone, kInt8, kInt4 };

/// A constant matrix [outputs, depth] in the form in which it lies in memory: numbers of one floating type, or codes. A
/// number is code * scale (8 bits) or code * scale + lowest (4 bits). The codes of a block lie interleaved, as vectors
/// of eight take them apart by shifts: those of numbers l, 8 + l, 16 + l and 24 + l are neighbours.
struct Matrix {
  at::Tensor data;    // [outputs, depth] floating or int8; of 4 bits uint8 [outputs, depth / 2], the lower half first
  at::Tensor scales;  // float16: [outputs, blocks] of 8 bits, [outputs, blocks, 2] (scale, lowest) of 4; else undefined

  Matrix() = default;
  Matrix(at::Tensor dense) : data(std::move(dense)) {}  // NOLINT: a tensor is a matrix
  Matrix(at::Tensor codes, at::Tensor code_scales) : data(std::move(codes)), scales(std::move(code_scales)) {}

  Quantization quantization() const;
  bool is_quantized() const { return scales.defined(); }
  int64_t outputs() const { return data.size(0); }
  int64_t depth() const;

  /// Rows first .. first + count - 1, on the same memory.
  Matrix rows(int64_t first, int64_t count) const;
  /// Writes a dense matrix of the same shape over this one, in this one's form.
  void assign(const at::Tensor& dense);
  /// The numbers in `dtype`: [outputs, depth]; a view where they are stored so.
  at::Tensor dense(at::ScalarType dtype) const;
  /// The rows `index` [...] in `dtype`: [..., depth].
  at::Tensor gather(const at::Tensor& index, at::ScalarType dtype) const;
};

/// weight [outputs, depth] in codes, computed on its device. Depths that are no multiple of kCodeBlock stay as they
/// are, and so does everything under kNone. Of 8 bits a block's largest magnitude has the code 127; of 4 bits its lowest
/// number has the code 0 and its highest 15.
Matrix quantize(const at::Tensor& weight, Quantization quantization);

/// codes [outputs, depth] in the order of the numbers, int8 or uint8 below 16, and their scales as Matrix has them.
Matrix from_codes(const at::Tensor& codes, const at::Tensor& scales);

/// Matrices of one depth as one, their rows following one another; in the widest of their forms.
Matrix concatenate(const std::vector<Matrix>& parts);

}  // namespace carillon::kernels
