#include "core/vae/tiling.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/runtime/devices.h"
#include "core/runtime/error.h"

namespace carillon {

int64_t tile_overlap_frames(const VaeConfig& config) {
  constexpr double kEndReach = 3;    // samples of a convolution of kernel 7
  constexpr double kUnitsReach = 39;  // of three of them with dilations 1, 3 and 9
  double reach = kEndReach, samples_per_frame = 1;
  for (auto ratio = config.downsampling_ratios.rbegin(); ratio != config.downsampling_ratios.rend(); ++ratio) {
    reach += 1 / samples_per_frame;  // a transposed convolution reads the sample before
    samples_per_frame *= static_cast<double>(*ratio);
    reach += kUnitsReach / samples_per_frame;
  }
  return static_cast<int64_t>(std::ceil(reach + kEndReach / samples_per_frame)) + 1;
}

std::vector<Tile> plan_tiles(int64_t frames, int64_t window, int64_t overlap) {
  if (frames <= window) return {{0, frames, 0, frames}};
  const int64_t step = window - 2 * overlap;
  if (step < 1) {
    fail(ErrorCode::kBadArgument, "a tile of " + std::to_string(window) + " frames is not wider than its overlaps");
  }
  std::vector<Tile> tiles;
  for (int64_t begin = 0; begin < frames; begin += step) {
    const int64_t end = std::min(begin + step, frames);
    tiles.push_back({begin, end, std::max<int64_t>(0, begin - overlap), std::min(end + overlap, frames)});
  }
  return tiles;
}

int64_t window_frames(const Placement& placement) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  const std::string name = placement.device.is_cuda() ? "cuda:" + std::to_string(placement.device.index()) : "cpu";
  int64_t memory = 0;
  for (const DeviceInfo& device : list_devices()) {
    if (device.name == name) memory = device.memory_bytes;
  }
  return memory >= 22 * kGibibyte ? 512 : memory >= 15 * kGibibyte ? 384 : memory >= 11 * kGibibyte ? 256 : 128;
}

namespace {

/// Items that run together: the whole batch where it fits one window and the network takes batches.
int64_t group_size(const Oobleck& network, int64_t batch, int64_t frames, int64_t window) {
  return !network.time_major && batch * frames <= window ? batch : 1;
}

}  // namespace

at::Tensor decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config, int64_t window,
                        const Control& control) {
  const int64_t batch = latents.size(0), frames = latents.size(2), hop = config.samples_per_frame();
  const at::Tensor audio = at::empty({batch, config.audio_channels, frames * hop}, at::kFloat);
  const std::vector<Tile> tiles = plan_tiles(frames, window, tile_overlap_frames(config));
  const int64_t group = group_size(decoder, batch, frames, window);
  const int64_t total = batch / group * static_cast<int64_t>(tiles.size());
  int64_t done = 0;
  SignalPool pool;
  for (int64_t item = 0; item < batch; item += group) {
    for (const Tile& tile : tiles) {
      control.report(Stage::kDecode, done++, total);
      const at::Tensor input = latents.narrow(0, item, group).slice(2, tile.window_begin, tile.window_end);
      const int64_t first = tile.begin - tile.window_begin, count = tile.end - tile.begin;
      const at::Tensor kept = decoder.decode(input, pool).narrow(2, first * hop, count * hop);
      audio.narrow(0, item, group).narrow(2, tile.begin * hop, count * hop).copy_(kept);
    }
  }
  control.report(Stage::kDecode, total, total);
  return audio;
}

at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control) {
  const int64_t batch = audio.size(0), samples = audio.size(2), hop = config.samples_per_frame();
  const int64_t frames = samples / hop;
  const at::Tensor moments = at::empty({batch, config.encoder_hidden_size, frames}, at::kFloat);
  const std::vector<Tile> tiles = plan_tiles(frames, window, tile_overlap_frames(config));
  const int64_t group = group_size(encoder, batch, frames, window);
  const int64_t total = batch / group * static_cast<int64_t>(tiles.size());
  int64_t done = 0;
  SignalPool pool;
  for (int64_t item = 0; item < batch; item += group) {
    for (const Tile& tile : tiles) {
      control.report(Stage::kConditions, done++, total);
      // Samples of an incomplete last frame are context for the frame before.
      const int64_t end = tile.window_end == frames ? samples : tile.window_end * hop;
      const at::Tensor input = audio.narrow(0, item, group).slice(2, tile.window_begin * hop, end);
      const int64_t first = tile.begin - tile.window_begin, count = tile.end - tile.begin;
      const at::Tensor kept = encoder.encode(input, pool).narrow(2, first, count);
      moments.narrow(0, item, group).narrow(2, tile.begin, count).copy_(kept);
    }
  }
  control.report(Stage::kConditions, total, total);
  return moments;
}

}  // namespace carillon
