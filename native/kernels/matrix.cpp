#include "kernels/matrix.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace carillon::kernels {
namespace {

constexpr int64_t kLanes = 8, kVectors = kCodeBlock / kLanes;

/// Undoes the interleaving of codes. Returns int8 or uint8 codes [..., blocks, 32] in the order of the columns.
at::Tensor in_order(const at::Tensor& data) {
  at::Tensor codes = data;
  if (data.scalar_type() == at::kByte) codes = at::stack({data.bitwise_and(15), data.bitwise_right_shift(4)}, -1);
  return codes.reshape([&] {
    std::vector<int64_t> shape = data.sizes().vec();
    shape.back() = -1;
    shape.insert(shape.end(), {kLanes, kVectors});
    return shape;
  }()).transpose(-1, -2).flatten(-2);
}

/// Dequantizes data [..., columns or columns / 2] to numbers [..., columns] of `dtype`.
at::Tensor decode(const at::Tensor& data, const at::Tensor& scales, at::ScalarType dtype) {
  const at::Tensor codes = in_order(data).to(at::kFloat), wide = scales.to(at::kFloat);
  if (data.scalar_type() == at::kChar) return (codes * wide.unsqueeze(-1)).flatten(-2).to(dtype);
  return at::addcmul(wide.narrow(-1, 1, 1), codes, wide.narrow(-1, 0, 1)).flatten(-2).to(dtype);
}

/// Rounds numbers / scale to codes. A block with scale 0 gets the code 0.
at::Tensor quotient(const at::Tensor& numbers, const at::Tensor& scale) {
  return at::where(scale == 0, at::zeros({}, numbers.options()), numbers / scale).round();
}

Matrix quantize_int8(const at::Tensor& blocks) {
  const at::Tensor scale = (blocks.abs().amax(-1, /*keepdim=*/true) / 127).to(at::kHalf);
  const at::Tensor codes = quotient(blocks, scale.to(at::kFloat)).clamp(-127, 127).to(at::kChar);
  return from_codes(codes.flatten(1), scale.squeeze(-1));
}

Matrix quantize_int4(const at::Tensor& blocks) {
  const at::Tensor lowest = blocks.amin(-1, /*keepdim=*/true).to(at::kHalf);
  const at::Tensor above = blocks - lowest.to(at::kFloat);
  const at::Tensor scale = (above.amax(-1, /*keepdim=*/true) / 15).to(at::kHalf);
  const at::Tensor codes = quotient(above, scale.to(at::kFloat)).clamp(0, 15).to(at::kByte);
  return from_codes(codes.flatten(1), at::cat({scale, lowest}, -1));
}

}  // namespace

Quantization Matrix::quantization() const {
  if (!is_quantized()) return Quantization::kNone;
  return data.scalar_type() == at::kChar ? Quantization::kInt8 : Quantization::kInt4;
}

int64_t Matrix::columns() const { return quantization() == Quantization::kInt4 ? 2 * data.size(1) : data.size(1); }

Matrix Matrix::rows(int64_t first, int64_t count) const {
  return {data.narrow(0, first, count), is_quantized() ? scales.narrow(0, first, count) : at::Tensor()};
}

at::Tensor Matrix::dense(at::ScalarType dtype) const {
  return is_quantized() ? decode(data, scales, dtype) : data.to(dtype);
}

at::Tensor Matrix::gather(const at::Tensor& index, at::ScalarType dtype) const {
  if (!is_quantized()) return at::embedding(data, index).to(dtype);
  const at::Tensor flat = index.reshape({-1});
  return decode(data.index_select(0, flat), scales.index_select(0, flat), dtype)
      .reshape([&] {
        std::vector<int64_t> shape = index.sizes().vec();
        shape.push_back(columns());
        return shape;
      }());
}

Matrix quantize(const at::Tensor& weight, Quantization quantization) {
  if (quantization == Quantization::kNone || weight.size(1) % kCodeBlock != 0) return weight;
  const at::Tensor blocks = weight.to(at::kFloat).unflatten(1, {-1, kCodeBlock});
  return quantization == Quantization::kInt8 ? quantize_int8(blocks) : quantize_int4(blocks);
}

Matrix from_codes(const at::Tensor& codes, const at::Tensor& scales) {
  const at::Tensor interleaved = codes.unflatten(1, {-1, kVectors, kLanes}).transpose(-1, -2).flatten(1);
  if (codes.scalar_type() == at::kChar) return {interleaved, scales.contiguous()};
  const at::Tensor pairs = interleaved.unflatten(1, {-1, 2});
  return {pairs.select(-1, 0).bitwise_or(pairs.select(-1, 1).bitwise_left_shift(4)), scales.contiguous()};
}

Matrix concatenate(const std::vector<Matrix>& parts) {
  const auto bits = [](const Matrix& part) {
    return part.is_quantized() ? part.data.scalar_type() == at::kChar ? 8 : 4 : 32;
  };
  const Matrix& widest = *std::max_element(parts.begin(), parts.end(),
                                           [&](const Matrix& a, const Matrix& b) { return bits(a) < bits(b); });
  std::vector<at::Tensor> data, scales;
  for (const Matrix& part : parts) {
    const bool fits = bits(part) == bits(widest);
    const auto dtype = widest.is_quantized() ? at::kFloat : widest.data.scalar_type();
    const Matrix same = fits ? part : quantize(part.dense(dtype), widest.quantization());
    data.push_back(same.data);
    if (same.is_quantized()) scales.push_back(same.scales);
  }
  return {at::cat(data), scales.empty() ? at::Tensor() : at::cat(scales)};
}

Matrix view_adjacent(const std::vector<Matrix>& parts) {
  const at::Tensor& first = parts[0].data;
  const char* next = static_cast<const char*>(first.const_data_ptr());
  int64_t outputs = 0;
  for (const auto& [data, scales] : parts) {
    const bool follows = !scales.defined() && data.is_cpu() && data.is_contiguous() &&
                         data.scalar_type() == first.scalar_type() && data.const_data_ptr() == next;
    if (!follows) return {};
    next += data.nbytes();
    outputs += data.size(0);
  }
  return at::from_blob(first.data_ptr(), {outputs, first.size(1)}, [parts](void*) {}, first.options());
}

}  // namespace carillon::kernels
