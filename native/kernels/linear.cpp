#include "kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/packed_matrix.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {

at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) {
  return at::linear(x, weight.dense(x.scalar_type()), bias);
}

namespace {

constexpr int64_t kBytesWorthAThread = 128 << 10, kCachedBytes = 64 << 10;

bool is_differentiated(const at::Tensor& x, const Matrix& weight) {
  return at::GradMode::is_enabled() && (x.requires_grad() || weight.data.requires_grad());
}

StoredMatrix stored(const Matrix& weight) {
  constexpr StoredForm kForms[] = {StoredForm::kBfloat16, StoredForm::kInt8, StoredForm::kInt4};
  const auto* scales = weight.is_quantized() ? static_cast<const uint16_t*>(weight.scales.const_data_ptr()) : nullptr;
  return {kForms[static_cast<int>(weight.quantization())], weight.data.const_data_ptr(), scales, weight.outputs(),
          weight.columns()};
}

/// The bias as the CPU kernels read it: float32, or undefined.
at::Tensor wide(const at::Tensor& bias) { return bias.defined() ? bias.to(at::kFloat).contiguous() : bias; }

/// Multiplies many rows by tiles. The rows are float32, or bfloat16.
at::Tensor multiply_tiles(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  at::Tensor y = at::empty({rows.size(0), weight.outputs()}, rows.options());
  matmul_unpacked(rows, stored(weight), wide(bias), y);
  return y;
}

#if defined(CARILLON_AVX512)
bool can_multiply_bfloat16(const at::Tensor& x, const Matrix& weight) {
  const bool is_stored = weight.is_quantized() || weight.data.scalar_type() == at::kBFloat16;
  return has_avx512() && x.scalar_type() == at::kBFloat16 && weight.data.is_cpu() && is_stored &&
         weight.data.is_contiguous() && weight.columns() % 2 == 0;
}

/// Multiplies up to kGemvRows rows while it reads the weight once. More rows read a part of the weight several times,
/// so it must fit the cache.
at::Tensor multiply_few_bfloat16(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t count = rows.size(0), outputs = weight.size(0), depth = weight.size(1), row_bytes = 2 * depth;
  const int64_t part = count <= kGemvRows ? outputs : std::max<int64_t>(1, kCachedBytes / row_bytes);
  const at::Tensor wide_bias = wide(bias);
  const auto* const b = bias.defined() ? wide_bias.const_data_ptr<float>() : nullptr;
  const auto* const x = static_cast<const uint16_t*>(rows.const_data_ptr());
  const auto* const w = static_cast<const uint16_t*>(weight.const_data_ptr());
  at::Tensor y = at::empty({count, outputs}, rows.options());
  auto* const out = static_cast<uint16_t*>(y.data_ptr());
  at::parallel_for(0, outputs, kBytesWorthAThread / row_bytes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += part) {
      for (int64_t row = 0; row < count; row += kGemvRows) {
        gemv_avx512(x + row * depth, static_cast<int>(std::min<int64_t>(kGemvRows, count - row)), w + first * depth,
                    std::min(part, end - first), depth, b ? b + first : nullptr, out + row * outputs + first, outputs);
      }
    }
  });
  return y;
}
#endif

#if defined(CARILLON_FLOAT_TILES)
/// Whether a kernel can read the weight in its storage type. Otherwise the weight must be converted to the type of x
/// first, which costs memory traffic.
bool can_stream(const at::Tensor& x, const Matrix& weight) {
  const bool is_stored = weight.is_quantized() || weight.data.scalar_type() == at::kBFloat16;
  return has_float_tiles() && x.is_cpu() && weight.data.is_cpu() && is_stored && weight.data.is_contiguous() &&
         weight.columns() % kCodeBlock == 0 && (weight.is_quantized() || x.scalar_type() != weight.data.scalar_type());
}

/// Splits the rows of a weight between threads. Each thread calls use(part, index of the part's first row).
template <typename Use>
void in_parts(const Matrix& weight, const Use& use) {
  at::parallel_for(0, weight.outputs(), kBytesWorthAThread / (2 * weight.columns()) + 1,
                   [&, whole = stored(weight)](int64_t begin, int64_t end) { use(whole.rows(begin, end - begin), begin); });
}

GemvCodes* fastest_gemv_codes() {
#if defined(CARILLON_AVX512)
  if (has_avx512()) return gemv_codes_avx512;
#endif
  return gemv_codes;
}

/// y [rows, outputs] of a matrix of codes. Converts x to 16-bit integers first.
void stream_codes(const at::Tensor& x, const Matrix& weight, float* y) {
  const int64_t count = x.size(0), depth = weight.columns(), blocks = depth / kCodeBlock;
  const at::Tensor numbers = at::empty({count, (blocks + 1) / 2, 2 * kCodeBlock}, at::kShort);
  const at::Tensor scales = at::empty({2, count, blocks}, at::kFloat);
  auto* const of_scales = scales.mutable_data_ptr<float>();
  const RoundedRows rounded{numbers.mutable_data_ptr<int16_t>(), of_scales, of_scales + count * blocks};
  round_rows(x.const_data_ptr<float>(), count, depth, stored(weight).form, rounded);
  in_parts(weight, [&, gemv = fastest_gemv_codes()](const StoredMatrix& part, int64_t first) {
    gemv(rounded, static_cast<int>(count), part, y + first, weight.outputs());
  });
}

void stream_bfloat16(const at::Tensor& x, const Matrix& weight, float* y) {
  const at::Tensor split = at::empty_like(x);
  split_pairs_float(x.const_data_ptr<float>(), x.size(0), x.size(1), split.mutable_data_ptr<float>());
  in_parts(weight, [&](const StoredMatrix& part, int64_t first) {
    gemv_float(split.const_data_ptr<float>(), static_cast<int>(x.size(0)), part, y + first, weight.outputs());
  });
}

at::Tensor stream_few(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  const at::Tensor x = rows.to(at::kFloat).contiguous();
  const at::Tensor y = at::empty({rows.size(0), weight.outputs()}, x.options());
  (weight.is_quantized() ? stream_codes : stream_bfloat16)(x, weight, y.mutable_data_ptr<float>());
  if (bias.defined()) y.add_(bias);
  return y.to(rows.scalar_type());
}

/// For many rows. Splits the weight into parts that fit the processor's cache, and converts each part to the type of x
/// before multiplying it.
at::Tensor stream_many(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  constexpr int64_t kWideBytes = 4 << 20;
  const int64_t outputs = weight.outputs(), depth = weight.columns();
  const int64_t group = std::clamp<int64_t>(kWideBytes / (4 * depth), 16, outputs);
  const at::Tensor y = at::empty({rows.size(0), outputs}, rows.options());
  const at::Tensor wide = at::empty({group, depth}, at::kFloat);
  for (int64_t first = 0; first < outputs; first += group) {
    const int64_t count = std::min(group, outputs - first);
    in_parts(weight.rows(first, count), [&](const StoredMatrix& part, int64_t row) {
      widen_float(part, wide.mutable_data_ptr<float>() + row * depth);
    });
    const at::Tensor some_bias = bias.defined() ? bias.narrow(0, first, count) : bias;
    y.narrow(1, first, count).copy_(kernels::linear(rows, wide.narrow(0, 0, count).to(rows.scalar_type()), some_bias));
  }
  return y;
}
#endif

/// Multiplies row by row, because libtorch sums in an order that depends on the number of rows.
at::Tensor multiply_by_row(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  const Matrix dense = weight.dense(rows.scalar_type());
  std::vector<at::Tensor> products;
  for (const at::Tensor& row : rows.split(1)) products.push_back(linear_reference(row, dense, bias));
  return products.size() == 1 ? products[0] : at::cat(products);
}

at::Tensor multiply(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
#if defined(CARILLON_AVX512)
  if (can_multiply_bfloat16(rows, weight)) {
    if (rows.size(0) > kFewRows) return multiply_tiles(rows, weight, bias);
    if (!weight.is_quantized()) return multiply_few_bfloat16(rows, weight.data, bias);
  }
#endif
#if defined(CARILLON_FLOAT_TILES)
  if (can_stream(rows, weight)) {
    if (rows.size(0) <= kFewRows) return stream_few(rows, weight, bias);
    const bool has_tiles = prefers_float_tiles() && rows.scalar_type() == at::kFloat;
    return (has_tiles ? multiply_tiles : stream_many)(rows, weight, bias);
  }
#endif
  return (rows.size(0) <= kFewRows ? multiply_by_row : linear_reference)(rows, weight, bias);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) {
  if (!x.is_cpu() || x.numel() == 0 || is_differentiated(x, weight)) return linear_reference(x, weight, bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.outputs();
  return multiply(x.reshape({-1, weight.columns()}).contiguous(), weight, bias).view(shape);
}

bool is_stored_form_fast(const at::Tensor& weight, at::ScalarType dtype, at::Device device) {
  return has_float_tiles() && device.is_cpu() && dtype == at::kFloat && weight.scalar_type() == at::kBFloat16 &&
         weight.size(1) % kCodeBlock == 0;
}

}  // namespace carillon::kernels
