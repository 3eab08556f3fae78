#include "core/nn/rms_norm.h"

#include <ATen/ATen.h>

namespace carillon::nn {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (x.is_cuda()) return at::rms_norm(x, {x.size(-1)}, std::nullopt, eps) * weight;
  const at::Tensor mean_square =
      at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true, at::kFloat).square() / static_cast<double>(x.size(-1));
  return at::mul(x, (mean_square + eps).rsqrt()).to(x.scalar_type()) * weight;
}

RmsNorm RmsNorm::load(const Weights& weights, int64_t size, double eps) { return {weights.get("weight", {size}), eps}; }

}  // namespace carillon::nn
