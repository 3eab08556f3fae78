#include "core/adapters/delta.h"

#include <ATen/ATen.h>

namespace carillon {

at::Tensor lora_delta(const at::Tensor& a, const at::Tensor& b, double scale) { return at::matmul(b, a) * scale; }

at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale) { return at::kron(w1, w2) * scale; }

at::Tensor row_norms(const at::Tensor& weight) { return at::linalg_vector_norm(weight, 2, {1}, /*keepdim=*/true); }

at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon) {
  const int64_t along = magnitude.size(1) == 1 ? 1 : 0;
  const at::Tensor norms = at::linalg_vector_norm(changed, 2, {along}, /*keepdim=*/true);
  return changed * (magnitude / (norms + norm_epsilon));
}

}  // namespace carillon
