#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/checkpoint/config.h"
#include "core/runtime/control.h"
#include "core/runtime/device.h"
#include "core/vae/convolution.h"

namespace carillon {

/// x + conv2(snake2(conv1(snake1(x)))): kernel 7 with a dilation, then kernel 1.
struct ResidualUnit {
  Snake snake1, snake2;
  Convolution conv1, conv2;
};

/// An encoder block: units, snake, strided convolution. A decoder block: snake, transposed convolution, units.
struct OobleckBlock {
  std::vector<ResidualUnit> units;  // three, minus units whose last convolution is zero, which change nothing
  Snake snake;
  Convolution resample;
};

/// The products that suit this network best. The time-major kernels need a CPU with AVX2 or NEON; libtorch runs other
/// networks in the reference's order of operations. With AVX512-BF16, integers keep a bfloat16 decoder of random weights
/// at 49 dB of signal to noise, bfloat16 at 26 dB in the same time; only AMX is several times as fast in bfloat16. A
/// network with channels that fill no block of integers is small enough for float32.
Products choose_products(const Placement& placement, const VaeConfig& config);

/// Numbers of channels of an encoder or decoder, beginning at the audio: `base`, then a multiple of `base` per block.
std::vector<int64_t> channel_widths(int64_t base, const VaeConfig& config);

/// Encoder or decoder: convolution, blocks, snake, convolution.
struct Oobleck {
  Convolution first;
  std::vector<OobleckBlock> blocks;
  Snake last_snake;
  Convolution last;
  Products products = Products::kLibtorch;
  at::ScalarType dtype = at::kFloat;

  static Oobleck load_encoder(const Weights& weights, const VaeConfig& config, Products products);
  static Oobleck load_decoder(const Weights& weights, const VaeConfig& config, Products products);

  bool is_time_major() const { return products != Products::kLibtorch; }

  /// audio [B, audio_channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames]. Time-major: B = 1.
  at::Tensor encode(const at::Tensor& audio, SignalPool& pool) const;
  /// latents [B, C, T] -> audio float32 [B, audio_channels, samples]. Time-major: B = 1.
  at::Tensor decode(const at::Tensor& latents, SignalPool& pool) const;

 private:
  Signal to_signal(const at::Tensor& x, SignalPool& pool) const;
  /// Runs the last block and the last convolution in parts, because the whole signal between them would not fit the
  /// cache. The result is bit-equal to a single run. The block must have no residual units.
  at::Tensor run_end_in_parts(const Signal& x, SignalPool& pool) const;
};

/// Number of latent frames that are computed on each side of a tile and discarded. It covers the receptive field of
/// decoder and encoder, so that tiled and whole results are equal. The published VAE needs 10 frames.
int64_t tile_overlap_frames(const VaeConfig& config);

/// A tile computes the frames [window_begin, window_end) and keeps the frames [begin, end).
struct Tile {
  int64_t begin, end;
  int64_t window_begin, window_end;
};

/// Widths of tile windows, in frames.
struct TileWidths {
  int64_t window;  // widest window
  /// Width of the first tile. It may be narrow, so that playback starts soon. Each later tile is twice as wide as the
  /// tile before it, up to `window`.
  int64_t first = window;
  /// Whether the last tile also has the full width, so that it starts earlier. Use it on GPUs, which plan each
  /// new shape separately.
  bool has_full_last_tile = false;
};

/// Cuts `frames` into tiles; one tile if all fit the first window. Throws kBadArgument unless windows are wider than
/// two overlaps.
std::vector<Tile> plan_tiles(int64_t frames, int64_t overlap, const TileWidths& widths);

/// Width of the window for a placement. Memory limits the width: in bfloat16 the last stage needs about 4.4 MB a frame.
/// The width depends on the total memory, not on the free memory, so that results are reproducible.
int64_t window_frames(const Placement& placement);

/// Called with decoded `audio` [items, audio channels, samples] float32 of one or more items, on the decoder's device.
/// The first item is `item`, and the audio begins at its `sample`. The callback may modify the audio.
using OnTile = std::function<void(int64_t item, int64_t sample, const at::Tensor& audio)>;

/// Decodes latents [B, C, T] to audio [audio channels, samples_per_frame * T] float32 on the CPU for each item. A tile
/// has as many items as fit the window. `on_tile` gets each tile's audio before it is joined to the other tiles' audio.
std::vector<at::Tensor> decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config,
                                     int64_t window, const Control& control, const OnTile& on_tile = {});

/// audio [B, audio channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames] on the CPU.
at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control);

}  // namespace carillon
