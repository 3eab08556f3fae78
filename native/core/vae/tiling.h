#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/runtime/control.h"
#include "core/runtime/placement.h"
#include "core/vae/networks.h"

namespace carillon {

/// Latent frames computed beside each tile and thrown away. One frame reaches 9 frames each way in the decoder and
/// 7 in the encoder (reference engine.md 6.5), so that 16 makes tiled and whole results the same.
inline constexpr int64_t kTileOverlapFrames = 16;

/// Frames [begin, end) are kept of those computed, [window_begin, window_end).
struct Tile {
  int64_t begin, end;
  int64_t window_begin, window_end;
};

/// Cuts `frames` into tiles whose windows have at most `window` frames; a single one where all fit.
/// Throws kBadArgument unless window > 2 * kTileOverlapFrames.
std::vector<Tile> plan_tiles(int64_t frames, int64_t window);

/// The window that suits a placement's memory: the last stage holds three tensors of 128 channels at the sampling
/// rate, about 1.5 MB a frame in bfloat16. Fixed per machine, so that a song's bytes do not depend on its load.
int64_t window_frames(const Placement& placement);

/// latents [B, C, T] -> float32 [B, audio channels, samples_per_frame * T] on the CPU.
at::Tensor decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config, int64_t window,
                        const Control& control);

/// audio [B, audio channels, samples] -> mean and scale stacked, float32 [B, 2 C, frames] on the CPU.
at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control);

}  // namespace carillon
