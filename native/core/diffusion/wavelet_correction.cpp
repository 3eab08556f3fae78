#include "core/diffusion/wavelet_correction.h"

#include <ATen/ATen.h>

namespace carillon {

at::Tensor WaveletCorrection::apply(const at::Tensor& state, const at::Tensor& data, double time) const {
  const at::Tensor apart = state - data;
  if (band == WaveletBand::kPixel) return state + time * low * apart;
  // The transform is linear, so one transform of the difference is enough. Odd lengths are padded with zero.
  const int64_t frames = apart.size(1), padding = frames % 2;
  const at::Tensor pairs = at::constant_pad_nd(apart, {0, 0, 0, padding}).unflatten(1, {-1, 2});
  const at::Tensor smooth = pairs.mean(2, /*keepdim=*/true).expand_as(pairs).flatten(1, 2).narrow(1, 0, frames);
  at::Tensor corrected = state;
  if (band != WaveletBand::kHigh) corrected = corrected + time * low * smooth;
  if (band != WaveletBand::kLow) corrected = corrected + (1.0 - time) * high * (apart - smooth);
  return corrected;
}

}  // namespace carillon
