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

/// An encoder block runs its units, then snake and the strided convolution; a decoder block runs snake and the
/// transposed convolution, then its units.
struct OobleckBlock {
  std::vector<ResidualUnit> units;  // three, without those whose last convolution is zero: they add nothing
  Snake snake;
  Convolution resample;
};

/// True where the time-major kernels (convolution.h) can run this network: on a CPU that has them for its type.
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
  /// latents [B, C, T] -> audio float32 [B, audio_channels, samples]. Time-major: B = 1.
  at::Tensor decode(const at::Tensor& latents, SignalPool& pool) const;

 private:
  Signal enter(const at::Tensor& x, SignalPool& pool) const;
  /// The last block, which has no units, and the last convolution, by stretches that stay in the cache: the signal between
  /// them is the longest of all. Time-major; the same bits as at once.
  at::Tensor end_in_stretches(const Signal& x, SignalPool& pool) const;
};

/// Latent frames computed beside each tile and thrown away: at least as many as one frame reaches each way in the
/// decoder, and therefore in the encoder, so that tiled and whole results are the same. 10 for the published VAE,
/// more where more is done at low rates.
int64_t tile_overlap_frames(const VaeConfig& config);

/// Frames [begin, end) are kept of those computed, [window_begin, window_end).
struct Tile {
  int64_t begin, end;
  int64_t window_begin, window_end;
};

/// How wide the windows of tiles are, in frames.
struct TileWidths {
  int64_t window;  // at most
  /// Of the first tile; each further one is twice as wide, up to `window`. What is decoded first is heard soon then.
  int64_t first = window;
  /// The last has as many as the others and reaches back, as a GPU plans each shape anew.
  bool is_whole = false;
};

/// Cuts `frames` into tiles; a single one where all fit the first window.
/// Throws kBadArgument unless the windows are wider than two overlaps.
std::vector<Tile> plan_tiles(int64_t frames, int64_t overlap, const TileWidths& widths);

/// The window that suits a placement's memory: the last stage holds three tensors of 128 channels at the sampling
/// rate, in all about 4.4 MB a frame in bfloat16. Fixed per machine, so that a song's bytes do not depend on its load.
int64_t window_frames(const Placement& placement);

/// Takes the audio that continues some items, [items, audio channels, samples] float32 on their device, from `item` and
/// from `sample` on. It may be changed in place.
using OnTile = std::function<void(int64_t item, int64_t sample, const at::Tensor& audio)>;

/// latents [B, C, T] -> float32 [B, audio channels, samples_per_frame * T] on the CPU; a GPU gives it at once at the
/// end. `on_tile` gets each part before it is joined to the others.
at::Tensor decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config, int64_t window,
                        const Control& control, const OnTile& on_tile = {});

/// audio [B, audio channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames] on the CPU.
at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control);

}  // namespace carillon
