#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/nn/layers.h"
#include "core/runtime/device.h"

/// Compiles a function for several instruction sets. The loader picks the best one that the processor supports.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CARILLON_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CARILLON_CLONES
#endif

namespace carillon::nn {

namespace {

constexpr int kLanes = 16;  // independent sums, so that the loop vectorises
constexpr int64_t kElementsPerTask = 1 << 15;

template <typename T>
inline __attribute__((always_inline)) void normalize_row(const T* x, const T* weight, T* y, int64_t size, float eps) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = static_cast<float>(x[i + lane]);
      sums[lane] += value * value;
    }
  }
  float total = 0;
  for (; i < size; ++i) total += static_cast<float>(x[i]) * static_cast<float>(x[i]);
  for (const float sum : sums) total += sum;
  const float scale = 1.0f / std::sqrt(total / static_cast<float>(size) + eps);
  for (i = 0; i < size; ++i) {
    const T unit = static_cast<T>(static_cast<float>(x[i]) * scale);
    y[i] = static_cast<T>(static_cast<float>(unit) * static_cast<float>(weight[i]));
  }
}

CARILLON_CLONES void normalize_float(const float* x, const float* weight, float* y, int64_t size, float eps) {
  normalize_row(x, weight, y, size, eps);
}
CARILLON_CLONES void normalize_bfloat16(const at::BFloat16* x, const at::BFloat16* weight, at::BFloat16* y,
                                        int64_t size, float eps) {
  normalize_row(x, weight, y, size, eps);
}

/// Normalises the rows of x [outer, inner, C], whose C is contiguous, with weight [inner, C]. Writes the contiguous
/// tensor y [outer, inner, C].
template <typename T, typename Normalize>
void normalize_rows(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, double eps, Normalize normalize) {
  const int64_t inner = x.size(1), size = x.size(2), outer_stride = x.stride(0), inner_stride = x.stride(1);
  const T* from = x.const_data_ptr<T>();
  const T* scales = weight.const_data_ptr<T>();
  T* to = y.mutable_data_ptr<T>();
  at::parallel_for(0, x.size(0) * inner, std::max<int64_t>(1, kElementsPerTask / size),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const int64_t outer = row / inner, head = row % inner;
                       normalize(from + outer * outer_stride + head * inner_stride, scales + head * size,
                                 to + row * size, size, static_cast<float>(eps));
                     }
                   });
}

/// Normalises in one pass over the data. Does not support gradients.
at::Tensor fused_on_cpu(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const int64_t size = x.size(-1), inner = weight.numel() / size;
  const at::Tensor rows = x.reshape({x.numel() / (inner * size), inner, size});
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (x.scalar_type() == at::kFloat) {
    normalize_rows<float>(rows, weight, y, eps, normalize_float);
  } else {
    normalize_rows<at::BFloat16>(rows, weight, y, eps, normalize_bfloat16);
  }
  return y;
}

bool fits_fused(const at::Tensor& x, const at::Tensor& weight) {
  const bool type =
      x.scalar_type() == weight.scalar_type() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
  const bool differentiated = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad());
  return x.is_cpu() && type && x.stride(-1) == 1 && weight.is_contiguous() && x.numel() > 0 && !differentiated;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (x.is_cuda()) return at::rms_norm(x, {x.size(-1)}, std::nullopt, eps) * weight;
  if (fits_fused(x, weight)) return fused_on_cpu(x, weight, eps);
  const at::Tensor wide = x.to(at::kFloat);
  return (wide * (wide.square().mean(-1, true) + eps).rsqrt()).to(x.scalar_type()) * weight;
}

RmsNorm RmsNorm::load(const Weights& weights, int64_t size, double eps) { return {weights.get("weight", {size}), eps}; }

namespace {

template <typename T>
inline __attribute__((always_inline)) void rotate_heads(const T* x, const T* cos, const T* sin, T* y, int64_t heads,
                                                        int64_t half) {
  for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half) {
    for (int64_t j = 0; j < half; ++j) {
      const float first = static_cast<float>(x[j]), second = static_cast<float>(x[j + half]);
      const float c = static_cast<float>(cos[j]), s = static_cast<float>(sin[j]);
      y[j] = static_cast<T>(first * c - second * s);
      y[j + half] = static_cast<T>(second * c + first * s);
    }
  }
}

CARILLON_CLONES void rotate_float(const float* x, const float* cos, const float* sin, float* y, int64_t heads,
                                  int64_t half) {
  rotate_heads(x, cos, sin, y, heads, half);
}
CARILLON_CLONES void rotate_bfloat16(const at::BFloat16* x, const at::BFloat16* cos, const at::BFloat16* sin,
                                     at::BFloat16* y, int64_t heads, int64_t half) {
  rotate_heads(x, cos, sin, y, heads, half);
}

template <typename T, typename Rotate>
void rotate_positions(const at::Tensor& x, const Rotary& rotary, at::Tensor& y, Rotate rotate) {
  const int64_t heads = x.size(2), half = x.size(3) / 2, width = heads * 2 * half, tables = rotary.cos.numel() / half;
  const T *from = x.const_data_ptr<T>(), *cos = rotary.cos.const_data_ptr<T>(), *sin = rotary.sin.const_data_ptr<T>();
  T* to = y.mutable_data_ptr<T>();
  at::parallel_for(0, x.size(0) * x.size(1), std::max<int64_t>(1, kElementsPerTask / width),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t table = i % tables * half;  // angles shared by the batch, or one set per row
                       rotate(from + i * width, cos + table, sin + table, to + i * width, heads, half);
                     }
                   });
}

bool fits_fused(const at::Tensor& x, const Rotary& rotary) {
  const bool type = x.scalar_type() == rotary.cos.scalar_type() &&
                    (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
  return x.is_cpu() && type && x.is_contiguous() && rotary.cos.is_contiguous() && rotary.sin.is_contiguous() &&
         !x.requires_grad();
}

/// Applies the rotary embedding in one pass over the data. Does not support gradients.
at::Tensor fused_on_cpu(const at::Tensor& x, const Rotary& rotary) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  if (x.scalar_type() == at::kFloat) {
    rotate_positions<float>(x, rotary, y, rotate_float);
  } else {
    rotate_positions<at::BFloat16>(x, rotary, y, rotate_bfloat16);
  }
  return y;
}

}  // namespace

Rotary Rotary::make(int64_t positions, int64_t head_dim, double theta, const Placement& placement) {
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);
  const at::Tensor frequencies = at::pow(at::Scalar(theta), exponents).reciprocal();
  const at::Tensor angles = at::outer(at::arange(positions, at::kFloat), frequencies);
  return {angles.cos().to(placement.device, placement.dtype), angles.sin().to(placement.device, placement.dtype)};
}

Rotary Rotary::for_sequences(const std::vector<int64_t>& lengths) const {
  std::vector<at::Tensor> cosines, sines;
  for (const int64_t length : lengths) {
    cosines.push_back(cos.narrow(0, 0, length));
    sines.push_back(sin.narrow(0, 0, length));
  }
  return {at::cat(cosines), at::cat(sines)};
}

Rotary Rotary::slice(int64_t first, int64_t count) const {
  return {cos.narrow(0, first, count), sin.narrow(0, first, count)};
}

Rotary Rotary::at(const at::Tensor& positions) const {
  const at::Tensor index = upload(positions, cos.device()).flatten();
  std::vector<int64_t> shape = positions.sizes().vec();
  shape.push_back(cos.size(1));
  return {cos.index_select(0, index).view(shape), sin.index_select(0, index).view(shape)};
}

at::Tensor apply_rotary(const at::Tensor& x, const Rotary& rotary) {
  if (fits_fused(x, rotary)) return fused_on_cpu(x, rotary);
  const int64_t half = x.size(-1) / 2;
  const at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor cos = rotary.cos.unsqueeze(-2), sin = rotary.sin.unsqueeze(-2);
  return at::cat({at::addcmul(first * cos, second, sin, -1), at::addcmul(second * cos, first, sin)}, -1);
}

}  // namespace carillon::nn
