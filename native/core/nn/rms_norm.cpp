#include "core/nn/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/nn/clones.h"

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

/// x [outer, inner, C] with contiguous C, weight [inner, C] -> contiguous [outer, inner, C].
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

/// One pass over the data; for what needs no gradient.
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

}  // namespace carillon::nn
