#include "kernels/decode_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {

at::Tensor decode_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return at::scaled_dot_product_attention(q, k, v);
}

namespace {

/// The kernel for this type, or null.
Attend<uint16_t>* kernel_of(uint16_t) {
#if defined(CARILLON_AVX512)
  if (has_avx512()) return attend_avx512;
#endif
  return nullptr;
}
Attend<float>* kernel_of(float) {
#if defined(CARILLON_FLOAT_TILES)
  if (has_float_tiles()) return attend_float;
#endif
  return nullptr;
}

bool is_readable(const at::Tensor& x, at::ScalarType dtype) {
  return x.is_cpu() && x.scalar_type() == dtype && x.stride(3) == 1 &&
         !(at::GradMode::is_enabled() && x.requires_grad());
}

template <typename Element>
at::Tensor attend(Attend<Element>* kernel, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t heads = k.size(1), length = k.size(2), dim = k.size(3), group = q.size(2);
  const at::Tensor queries = q.contiguous();
  at::Tensor out = at::empty(q.sizes(), q.options());
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const auto head_rows = [&](const at::Tensor& t, int64_t head) {
    const auto* data = static_cast<const Element*>(t.const_data_ptr());
    return HeadRows<Element>{data + head / heads * t.stride(0) + head % heads * t.stride(1), t.stride(2)};
  };
  const auto* pq = static_cast<const Element*>(queries.const_data_ptr());
  auto* po = static_cast<Element*>(out.data_ptr());
  at::parallel_for(0, q.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(static_cast<size_t>(kAttendQueries * length));
    for (int64_t head = begin; head < end; ++head) {
      const int64_t first = head * group * dim;
      kernel(pq + first, static_cast<int>(group), head_rows(k, head), head_rows(v, head), length, dim, scale,
             scores.data(), po + first);
    }
  });
  return out;
}

}  // namespace

at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::ScalarType dtype = q.scalar_type();
  const bool fits = is_readable(q, dtype) && is_readable(k, dtype) && is_readable(v, dtype) && q.size(3) % 32 == 0 &&
                    k.size(2) > 0;
  if (fits && dtype == at::kBFloat16) {
    if (auto* const kernel = kernel_of(uint16_t{})) return attend(kernel, q, k, v);
  }
  if (fits && dtype == at::kFloat) {
    if (auto* const kernel = kernel_of(float{})) return attend(kernel, q, k, v);
  }
  return decode_attention_reference(q, k, v);
}

}  // namespace carillon::kernels
