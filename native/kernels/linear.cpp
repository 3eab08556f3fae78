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

constexpr int64_t kBytesWorthAThread = 128 << 10;

bool is_differentiated(const at::Tensor& x, const Matrix& weight) {
  return at::GradMode::is_enabled() && (x.requires_grad() || weight.data.requires_grad());
}

#if defined(CARILLON_AVX512)
bool can_multiply_bfloat16(const at::Tensor& x, const Matrix& weight) {
  const auto is_bfloat16 = [](const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kBFloat16; };
  return has_avx512() && is_bfloat16(x) && is_bfloat16(weight.data) && weight.data.is_contiguous() &&
         weight.depth() % 2 == 0;
}

void gemv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y) {
  const int64_t outputs = weight.size(0), depth = weight.size(1);
  const auto* px = static_cast<const uint16_t*>(x.const_data_ptr());
  const auto* pw = static_cast<const uint16_t*>(weight.const_data_ptr());
  const auto* pb = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  auto* py = static_cast<uint16_t*>(y.data_ptr());
  const int rows = static_cast<int>(x.size(0));
  at::parallel_for(0, outputs, kBytesWorthAThread / (2 * depth) + 1, [&](int64_t begin, int64_t end) {
    gemv_avx512(px, rows, pw + begin * depth, end - begin, depth, pb ? pb + begin : nullptr, py + begin, outputs);
  });
}

at::Tensor multiply_bfloat16(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  at::Tensor y = at::empty({rows.size(0), weight.size(0)}, rows.options());
  if (rows.size(0) <= kGemvRows) {
    gemv(rows, weight, wide_bias, y);
  } else {
    matmul_unpacked(rows, weight, wide_bias, y);
  }
  return y;
}
#endif

#if defined(CARILLON_FLOAT_TILES)
/// Weights in another form than x: what is read from memory is the smaller form.
bool can_stream(const at::Tensor& x, const Matrix& weight) {
  const bool is_stored = weight.is_quantized() || weight.data.scalar_type() == at::kBFloat16;
  return has_float_tiles() && x.is_cpu() && weight.data.is_cpu() && is_stored && weight.data.is_contiguous() &&
         weight.depth() % kCodeBlock == 0 && (weight.is_quantized() || x.scalar_type() != weight.data.scalar_type());
}

StoredMatrix stored(const Matrix& weight) {
  constexpr StoredForm kForms[] = {StoredForm::kBfloat16, StoredForm::kInt8, StoredForm::kInt4};
  const auto* scales = weight.is_quantized() ? static_cast<const uint16_t*>(weight.scales.const_data_ptr()) : nullptr;
  return {kForms[static_cast<int>(weight.quantization())], weight.data.const_data_ptr(), scales, weight.outputs(),
          weight.depth()};
}

/// Calls use(rows of the weight, first row) for parts of it on several threads.
template <typename Use>
void in_parts(const Matrix& weight, const Use& use) {
  at::parallel_for(0, weight.outputs(), kBytesWorthAThread / (2 * weight.depth()) + 1,
                   [&](int64_t begin, int64_t end) { use(stored(weight.rows(begin, end - begin)), begin); });
}

at::Tensor stream_few(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  const at::Tensor x = rows.to(at::kFloat);
  const at::Tensor y = at::empty({rows.size(0), weight.outputs()}, x.options());
  in_parts(weight, [&](const StoredMatrix& part, int64_t first) {
    gemv_float(x.const_data_ptr<float>(), static_cast<int>(x.size(0)), part, y.mutable_data_ptr<float>() + first,
               weight.outputs());
  });
  if (bias.defined()) y.add_(bias);
  return y.to(rows.scalar_type());
}

at::Tensor multiply_tiles(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  at::Tensor y = at::empty({rows.size(0), weight.outputs()}, rows.options());
  matmul_unpacked(rows, stored(weight), bias.defined() ? bias.to(at::kFloat).contiguous() : bias, y);
  return y;
}

/// Some outputs at a time in the type of x, as many as stay in the processor's cache.
at::Tensor stream_many(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  constexpr int64_t kWideBytes = 4 << 20;
  const int64_t outputs = weight.outputs(), depth = weight.depth();
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

at::Tensor multiply(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
#if defined(CARILLON_AVX512)
  if (can_multiply_bfloat16(rows, weight)) return multiply_bfloat16(rows, weight.data, bias);
#endif
#if defined(CARILLON_FLOAT_TILES)
  if (can_stream(rows, weight)) {
    if (rows.size(0) <= kGemvRows) return stream_few(rows, weight, bias);
    const bool has_tiles = prefers_float_tiles() && rows.scalar_type() == at::kFloat;
    return (has_tiles ? multiply_tiles : stream_many)(rows, weight, bias);
  }
#endif
  return linear_reference(rows, weight, bias);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) {
  if (!x.is_cpu() || x.numel() == 0 || is_differentiated(x, weight)) return linear_reference(x, weight, bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.outputs();
  return multiply(x.reshape({-1, weight.depth()}).contiguous(), weight, bias).view(shape);
}

bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device) {
  return has_float_tiles() && device.is_cpu() && dtype == at::kFloat && weight.scalar_type() == at::kBFloat16 &&
         weight.size(1) % kCodeBlock == 0;
}

}  // namespace carillon::kernels
