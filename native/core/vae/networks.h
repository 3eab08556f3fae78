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

/// Whether the time-major kernels (convolution.h) support this network: on CPUs with kernels for its type. Otherwise
/// libtorch runs it in the reference's order of operations.
bool can_run_time_major(const Placement& placement, const VaeConfig& config);

/// Channels of encoder or decoder, from the audio end on: `base`, then a multiple of it for each block.
std::vector<int64_t> channel_widths(int64_t base, const VaeConfig& config);

/// Encoder or decoder: convolution, blocks, snake, convolution.
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
  /// latents [B, C, T] -> audio float32 [B, audio_channels, samples]. Time-major: B = 1.
  at::Tensor decode(const at::Tensor& latents, SignalPool& pool) const;

 private:
  Signal to_signal(const at::Tensor& x, SignalPool& pool) const;
  /// Runs the last block and the last convolution in parts that fit the cache, because the signal between the two is
  /// the longest of the network. The block must have no residual units. Time-major; bit-equal to a single run.
  at::Tensor run_end_in_parts(const Signal& x, SignalPool& pool) const;
};

/// Latent frames that are computed on each side of a tile and discarded. At least the receptive field of the decoder
/// and thus of the encoder, so that tiled and whole results are equal. 10 for the published VAE.
int64_t tile_overlap_frames(const VaeConfig& config);

/// A tile computes the frames [window_begin, window_end) and keeps the frames [begin, end).
struct Tile {
  int64_t begin, end;
  int64_t window_begin, window_end;
};

/// Widths of tile windows, in frames.
struct TileWidths {
  int64_t window;  // widest window
  /// Width of the first tile, narrow so that playback starts soon; each later one is twice as wide, up to `window`.
  int64_t first = window;
  /// Whether the last tile has the full width too, and so overlaps more. GPUs need this, because they plan each shape
  /// separately.
  bool has_full_last_tile = false;
};

/// Cuts `frames` into tiles; one tile if all fit the first window. Throws kBadArgument unless windows are wider than
/// two overlaps.
std::vector<Tile> plan_tiles(int64_t frames, int64_t overlap, const TileWidths& widths);

/// Window width for a placement: the last stage holds three tensors of 128 channels at the sampling rate, about 4.4 MB
/// a frame in bfloat16. Fixed per machine, so that output does not depend on its load.
int64_t window_frames(const Placement& placement);

/// Called with the next audio of one or more items: [items, audio channels, samples] float32 on the decoder's device.
/// It begins at `sample` of `item`. The callback may modify the audio.
using OnTile = std::function<void(int64_t item, int64_t sample, const at::Tensor& audio)>;

/// latents [B, C, T] -> for each item float32 [audio channels, samples_per_frame * T] on the CPU; a GPU copies an item
/// once, at its end. A tile has as many items as fit the window. `on_tile` gets each part before it is joined to the
/// others.
std::vector<at::Tensor> decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config,
                                     int64_t window, const Control& control, const OnTile& on_tile = {});

/// audio [B, audio channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames] on the CPU.
at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control);

}  // namespace carillon
