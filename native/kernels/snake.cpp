#include "kernels/snake.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace carillon::kernels {

at::Tensor snake_reference(const at::Tensor& x, const at::Tensor& frequency, const at::Tensor& gain) {
  const at::Tensor wide = x.to(at::kFloat);
  if (at::GradMode::is_enabled() && (x.requires_grad() || frequency.requires_grad() || gain.requires_grad())) {
    return (wide + at::sin(wide * frequency).square() * gain).to(x.scalar_type());
  }
  at::Tensor wave = at::sin(wide * frequency);
  return wave.mul_(wave).mul_(gain).add_(wide).to(x.scalar_type());
}

}  // namespace carillon::kernels
