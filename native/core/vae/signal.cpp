#include "core/vae/signal.h"

#include <ATen/ATen.h>

namespace carillon {

Signal SignalPool::take(int64_t length, int64_t channels) {
  const int64_t rows = length + 2 * Signal::kHalo;
  const int64_t elements = rows * channels;
  // Signals grow through a decoder and shrink through an encoder: what is free and too small will stay so.
  std::erase_if(buffers_, [&](const at::Tensor& buffer) {
    return buffer.storage().use_count() == 1 && buffer.numel() < elements;
  });
  for (const at::Tensor& buffer : buffers_) {
    if (buffer.storage().use_count() == 1) return {buffer.narrow(0, 0, elements).view({rows, channels}), length};
  }
  buffers_.push_back(at::empty({elements}, at::kBFloat16));
  return {buffers_.back().view({rows, channels}), length};
}

void clear_halo(const Signal& signal) {
  signal.data.narrow(0, 0, Signal::kHalo).zero_();
  signal.data.narrow(0, Signal::kHalo + signal.length, Signal::kHalo).zero_();
}

}  // namespace carillon
