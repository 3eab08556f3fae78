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

#if defined(CARILLON_AVX512)
namespace {

bool can_run(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto fits = [](const at::Tensor& t) {
    return t.is_cpu() && t.scalar_type() == at::kBFloat16 && t.stride(3) == 1 &&
           !(at::GradMode::is_enabled() && t.requires_grad());
  };
  return has_avx512() && fits(q) && fits(k) && fits(v) && q.size(3) % 32 == 0 && k.size(2) > 0;
}

}  // namespace

at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!can_run(q, k, v)) return decode_attention_reference(q, k, v);
  const int64_t heads = k.size(1), length = k.size(2), dim = k.size(3), group = q.size(2);
  const at::Tensor queries = q.contiguous();
  at::Tensor out = at::empty(q.sizes(), q.options());
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const auto head_rows = [&](const at::Tensor& t, int64_t head) {
    const auto* data = static_cast<const uint16_t*>(t.const_data_ptr());
    return HeadRows{data + head / heads * t.stride(0) + head % heads * t.stride(1), t.stride(2)};
  };
  const auto* pq = static_cast<const uint16_t*>(queries.const_data_ptr());
  auto* po = static_cast<uint16_t*>(out.data_ptr());
  at::parallel_for(0, q.size(0) * heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(static_cast<size_t>(length));
    for (int64_t head = begin; head < end; ++head) {
      const HeadRows keys = head_rows(k, head), values = head_rows(v, head);
      for (int64_t row = head * group; row < (head + 1) * group; ++row) {
        attend_avx512(pq + row * dim, keys, values, length, dim, scale, scores.data(), po + row * dim);
      }
    }
  });
  return out;
}
#else
at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return decode_attention_reference(q, k, v);
}
#endif

}  // namespace carillon::kernels
