#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/runtime/control.h"
#include "core/runtime/placement.h"
#include "core/vae/networks.h"

namespace carillon {

/// Latent frames computed beside each tile and thrown away: at least as many as one frame reaches each way in the
/// decoder, and therefore in the encoder, so that tiled and whole results are the same. 10 for the published VAE
/// (reference engine.md 6.5), more where more is done at low rates.
int64_t tile_overlap_frames(const VaeConfig& config);

/// Frames [begin, end) are kept of those computed, [window_begin, window_end).
struct Tile {
  int64_t begin, end;
  int64_t window_begin, window_end;
};

/// Cuts `frames` into tiles whose windows have at most `window` frames; a single one where all fit.
/// Throws kBadArgument unless window > 2 * overlap.
std::vector<Tile> plan_tiles(int64_t frames, int64_t window, int64_t overlap);

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
