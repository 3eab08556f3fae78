#include "kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "kernels/cpu.h"
#include "kernels/gemv.h"
#include "kernels/matmul.h"

namespace carillon::kernels {

at::Tensor linear_reference(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight, bias);
}

#if defined(CARILLON_AVX512)
namespace {

bool can_run(const at::Tensor& x, const at::Tensor& weight) {
  const auto is_bfloat16 = [](const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kBFloat16; };
  const bool differentiated = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad());
  return has_avx512() && !differentiated && is_bfloat16(x) && is_bfloat16(weight) && weight.is_contiguous() &&
         weight.size(1) % 2 == 0 && x.numel() > 0;
}

void gemv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y) {
  constexpr int64_t kBytesWorthAThread = 128 << 10;
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

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!can_run(x, weight)) return linear_reference(x, weight, bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor rows = x.reshape({-1, weight.size(1)}).contiguous();
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  at::Tensor y = at::empty({rows.size(0), weight.size(0)}, x.options());
  if (rows.size(0) <= kGemvRows) {
    gemv(rows, weight, wide_bias, y);
  } else {
    matmul_unpacked(rows, weight, wide_bias, y);
  }
  return y.view(shape);
}
#else
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return linear_reference(x, weight, bias);
}
#endif

}  // namespace carillon::kernels
