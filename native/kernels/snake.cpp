#include "kernels/snake.h"

#include <ATen/ATen.h>

namespace carillon::kernels {

at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
  const at::Tensor wide = x.to(at::kFloat);
  at::Tensor wave = at::sin(wide * frequency);
  return wave.mul_(wave).mul_(gain).add_(wide).to(x.scalar_type());
}

}  // namespace carillon::kernels
