#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/vae/convolution.h"

namespace carillon {

/// x + conv2(snake2(conv1(snake1(x)))): kernel 7 with a dilation, then kernel 1 (reference engine.md 6.1).
struct ResidualUnit {
  Snake snake1, snake2;
  Convolution conv1, conv2;
};

/// An encoder block runs its units, then snake and the strided convolution; a decoder block runs snake and the
/// transposed convolution, then its units.
struct OobleckBlock {
  std::vector<ResidualUnit> units;  // three, without those whose last convolution is zero: they add nothing
  Snake snake;
  Convolution resample;
};

/// True where the time-major kernels (convolution.h) can run this network: in bfloat16 on a CPU that has it.
/// libtorch runs it elsewhere, in the reference's order of operations.
bool can_run_time_major(const Placement& placement, const VaeConfig& config);

/// Channels from the wide end of a half, where it meets audio, to the narrow: `base`, then a multiple of it a block.
std::vector<int64_t> channel_widths(int64_t base, const VaeConfig& config);

/// Either half of the autoencoder: convolution, blocks, snake, convolution.
struct Oobleck {
  Convolution first;
  std::vector<OobleckBlock> blocks;
  Snake last_snake;
  Convolution last;
  bool time_major = false;
  at::ScalarType dtype = at::kFloat;

  static Oobleck load_encoder(const Weights& weights, const VaeConfig& config, bool time_major);
  static Oobleck load_decoder(const Weights& weights, const VaeConfig& config, bool time_major);

  /// audio [B, audio_channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames]. Time-major: B = 1.
  at::Tensor encode(const at::Tensor& audio, SignalPool& pool) const;
  /// The same from what a block is given, [B, channels, T] of the network's dtype. Not time-major.
  at::Tensor encode_from(size_t block, const at::Tensor& x, SignalPool& pool) const;
  /// latents [B, C, T] -> audio float32 [B, audio_channels, samples]. Time-major: B = 1.
  at::Tensor decode(const at::Tensor& latents, SignalPool& pool) const;

  int64_t parameter_count() const;

 private:
  Signal enter(const at::Tensor& x, SignalPool& pool) const;
  at::Tensor encode_blocks(size_t first_block, Convolution::Result x, SignalPool& pool) const;
};

}  // namespace carillon
