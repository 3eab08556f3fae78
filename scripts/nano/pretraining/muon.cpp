#include "pretraining/muon.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace carillon::pretraining {

bool learns_by_muon(const std::string& name, const at::Tensor& weight) {
  return weight.dim() == 2 && (name.find("attn.") != std::string::npos || name.find("mlp.") != std::string::npos);
}

at::Tensor muon_step(const at::Tensor& momentum, at::ScalarType dtype) {
  constexpr double kFirst = 3.4445, kThird = -4.7750, kFifth = 2.0315, kRootMeanSquare = 0.2;
  constexpr int kIterations = 5;
  const bool is_tall = momentum.size(0) > momentum.size(1);
  at::Tensor x = is_tall ? momentum.t() : momentum;
  x = (x / (x.norm() + 1e-7)).to(dtype);
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor square = at::mm(x, x.t());
    x = kFirst * x + at::mm(kThird * square + kFifth * at::mm(square, square), x);
  }
  const double longer = static_cast<double>(std::max(momentum.size(0), momentum.size(1)));
  return (is_tall ? x.t() : x).to(momentum.scalar_type()) * (kRootMeanSquare * std::sqrt(longer));
}

}  // namespace carillon::pretraining
