#include "core/diffusion/repaint.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace carillon {

at::Tensor inject_source(const at::Tensor& state, const Repaint& repaint, const at::Tensor& noise, double time) {
  return at::where(repaint.mask.unsqueeze(-1), state, time * noise + (1.0 - time) * repaint.clean);
}

at::Tensor soft_window(const at::Tensor& mask, int64_t frames) {
  const at::Tensor hard = mask.to(at::kCPU, at::kBool).contiguous();
  at::Tensor soft = hard.to(at::kFloat);
  const int64_t length = hard.size(1);
  for (int64_t item = 0; item < hard.size(0); ++item) {
    const bool* inside = hard.const_data_ptr<bool>() + item * length;
    float* weight = soft.mutable_data_ptr<float>() + item * length;
    const int64_t first = std::find(inside, inside + length, true) - inside;
    if (first == length) continue;
    int64_t end = length;
    while (!inside[end - 1]) --end;
    const int64_t before = std::min(frames, first), after = std::min(frames, length - end);
    for (int64_t i = 1; i <= before; ++i) weight[first - i] = 1.0f - static_cast<float>(i) / (before + 1);
    for (int64_t i = 1; i <= after; ++i) weight[end + i - 1] = 1.0f - static_cast<float>(i) / (after + 1);
  }
  return soft.to(mask.device());
}

at::Tensor blend_edges(const at::Tensor& latents, const Repaint& repaint) {
  const at::Tensor weight = soft_window(repaint.mask, repaint.crossfade_frames).unsqueeze(-1);
  return weight * latents + (1.0 - weight) * repaint.clean;
}

}  // namespace carillon
