#include "core/vae/networks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>

#include "core/runtime/error.h"
#include "kernels/cpu.h"
#include "kernels/packed_matrix.h"

namespace carillon {

namespace {

constexpr std::array<int64_t, 3> kDilations = {1, 3, 9};

ResidualUnit load_unit(const Weights& weights, int64_t channels, int64_t dilation, Products products) {
  return {
      Snake::load(weights.sub("snake1"), channels),
      Snake::load(weights.sub("snake2"), channels),
      Convolution::load(weights.sub("conv1"),
                        {.in = channels, .out = channels, .kernel = 7, .dilation = dilation, .padding = 3 * dilation},
                        products),
      Convolution::load(weights.sub("conv2"), {.in = channels, .out = channels, .kernel = 1}, products),
  };
}

/// Type of a time-major network's input.
at::ScalarType dtype_of(Products products) {
  return products == Products::kFixed ? at::kShort : products == Products::kFloat ? at::kFloat : at::kBFloat16;
}

bool adds_nothing(const Weights& unit, int64_t channels) {
  if (!unit.has("conv2.weight")) return false;
  const auto is_zero = [](const at::Tensor& tensor) { return !tensor.any().item<bool>(); };
  return is_zero(unit.get("conv2.weight", {channels, channels, 1})) && is_zero(unit.get("conv2.bias", {channels}));
}

std::vector<ResidualUnit> load_units(const Weights& weights, int64_t channels, Products products) {
  std::vector<ResidualUnit> units;
  for (size_t i = 0; i < kDilations.size(); ++i) {
    const Weights unit = weights.sub("res_unit" + std::to_string(i + 1));
    ResidualUnit loaded = load_unit(unit, channels, kDilations[i], products);
    if (!adds_nothing(unit, channels)) units.push_back(std::move(loaded));
  }
  return units;
}

ConvolutionShape resampling(int64_t in, int64_t out, int64_t stride, bool transposed) {
  return {.in = in,
          .out = out,
          .kernel = 2 * stride,
          .stride = stride,
          .padding = (stride + 1) / 2,
          .transposed = transposed};
}

/// The signal between two units, in two forms: plain for the residual, and after the snake for the next convolution.
using Stream = Convolution::Result;

/// The snake before the units of a block: the snake of the first unit or, without units, `next` of the next layer.
const Snake& entry_snake(const OobleckBlock& block, const Snake& next) {
  return block.units.empty() ? next : block.units.front().snake1;
}

/// Runs the units. The last unit applies `next`, the snake of the next layer, to its result.
Stream run_units(const OobleckBlock& block, Stream x, const Snake& next, bool keep, SignalPool& pool) {
  for (size_t i = 0; i < block.units.size(); ++i) {
    const ResidualUnit& unit = block.units[i];
    const bool is_last = i + 1 == block.units.size();
    Stream inner = unit.conv1(x.snaked, {.snake = &unit.snake2}, pool);
    x.snaked = {};
    x = unit.conv2(
        inner.snaked,
        {.residual = &x.plain, .snake = is_last ? &next : &block.units[i + 1].snake1, .keep = !is_last || keep}, pool);
  }
  return x;
}

}  // namespace

std::vector<int64_t> channel_widths(int64_t base, const VaeConfig& config) {
  std::vector<int64_t> widths = {base};
  for (const int64_t multiple : config.channel_multiples) widths.push_back(base * multiple);
  return widths;
}

Products choose_products(const Placement& placement, const VaeConfig& config) {
  const auto& ratios = config.downsampling_ratios;
  const bool fits_halo = std::ranges::all_of(ratios, [](int64_t ratio) { return ratio < Signal::kHalo; });
  // Numbers of channels; the kernels read channels in pairs.
  const std::initializer_list<int64_t> ends = {config.audio_channels, config.decoder_input_channels};
  const std::initializer_list<int64_t> bases = {config.encoder_hidden_size, config.decoder_channels};
  const auto divides = [](int64_t divisor) { return [=](int64_t channels) { return channels % divisor == 0; }; };
  const bool is_even = std::ranges::all_of(ends, divides(2)) && std::ranges::all_of(bases, divides(2));
  if (!placement.device.is_cpu() || !kernels::has_float_tiles() || !fits_halo || !is_even) return Products::kLibtorch;
  if (placement.dtype == at::kFloat || !kernels::has_avx512()) return Products::kFloat;
  if (kernels::has_amx()) return Products::kBfloat16;
  return std::ranges::all_of(bases, divides(kernels::kCodeBlock)) ? Products::kFixed : Products::kFloat;
}

Oobleck Oobleck::load_encoder(const Weights& weights, const VaeConfig& config, Products products) {
  const std::vector<int64_t> channels = channel_widths(config.encoder_hidden_size, config);
  Oobleck net;
  net.dtype = weights.placement().dtype;
  net.products = products;
  net.first = Convolution::load(
      weights.sub("conv1"), {.in = config.audio_channels, .out = channels[0], .kernel = 7, .padding = 3}, products);
  for (size_t i = 0; i < config.downsampling_ratios.size(); ++i) {
    const Weights block = weights.sub("block." + std::to_string(i));
    net.blocks.push_back(
        {load_units(block, channels[i], products), Snake::load(block.sub("snake1"), channels[i]),
         Convolution::load(block.sub("conv1"),
                           resampling(channels[i], channels[i + 1], config.downsampling_ratios[i], false),
                           products)});
  }
  net.last_snake = Snake::load(weights.sub("snake1"), channels.back());
  net.last = Convolution::load(weights.sub("conv2"),
                               {.in = channels.back(), .out = config.encoder_hidden_size, .kernel = 3, .padding = 1},
                               products);
  return net;
}

Oobleck Oobleck::load_decoder(const Weights& weights, const VaeConfig& config, Products products) {
  const std::vector<int64_t> channels = channel_widths(config.decoder_channels, config);
  Oobleck net;
  net.dtype = weights.placement().dtype;
  net.products = products;
  net.first = Convolution::load(
      weights.sub("conv1"), {.in = config.decoder_input_channels, .out = channels.back(), .kernel = 7, .padding = 3},
      products);
  for (size_t i = 0; i < config.downsampling_ratios.size(); ++i) {
    const size_t level = config.downsampling_ratios.size() - i;
    const Weights block = weights.sub("block." + std::to_string(i));
    net.blocks.push_back(
        {load_units(block, channels[level - 1], products), Snake::load(block.sub("snake1"), channels[level]),
         Convolution::load(
             block.sub("conv_t1"),
             resampling(channels[level], channels[level - 1], config.downsampling_ratios[level - 1], true),
             products)});
  }
  net.last_snake = Snake::load(weights.sub("snake1"), channels[0]);
  net.last = Convolution::load(
      weights.sub("conv2"), {.in = channels[0], .out = config.audio_channels, .kernel = 7, .padding = 3, .bias = false},
      products);
  return net;
}

Signal Oobleck::to_signal(const at::Tensor& x, SignalPool& pool) const {
  if (!is_time_major()) return {x.to(dtype), x.size(2)};
  const int64_t channels = first.input_channels();
  Signal signal = pool.take(x.size(2), channels, dtype_of(products));
  const auto rows = [&](const at::Tensor& all) { return all.narrow(0, Signal::kHalo, signal.length); };
  if (products == Products::kFixed) {
    const at::Tensor padded = at::constant_pad_nd(x[0].t(), {0, channels - x.size(1)});
    const auto [numbers, scales] = kernels::round_fixed(padded.unflatten(1, {-1, kernels::kCodeBlock}));
    rows(signal.data).copy_(numbers.flatten(1));
    rows(signal.scales).copy_(scales.squeeze(-1));
  } else {
    rows(signal.data).copy_(x[0].t());
  }
  clear_halo(signal);
  return signal;
}

at::Tensor Oobleck::encode(const at::Tensor& audio, SignalPool& pool) const {
  Stream x =
      first(to_signal(audio, pool), {.snake = &entry_snake(blocks.front(), blocks.front().snake), .keep = true}, pool);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool is_last = i + 1 == blocks.size();
    const Snake& next = is_last ? last_snake : entry_snake(blocks[i + 1], blocks[i + 1].snake);
    x = run_units(blocks[i], std::move(x), blocks[i].snake, /*keep=*/false, pool);
    x = blocks[i].resample(x.snaked, {.snake = &next, .keep = !is_last}, pool);
  }
  return last.run_to_float(x.snaked);
}

at::Tensor Oobleck::decode(const at::Tensor& latents, SignalPool& pool) const {
  Stream x = first(to_signal(latents, pool), {.snake = &blocks.front().snake}, pool);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const OobleckBlock& block = blocks[i];
    const bool is_last = i + 1 == blocks.size();
    if (is_last && is_time_major() && block.units.empty()) return run_end_in_parts(x.snaked, pool);
    const Snake& next = is_last ? last_snake : blocks[i + 1].snake;
    x = block.resample(x.snaked, {.snake = &entry_snake(block, next), .keep = !block.units.empty()}, pool);
    x = run_units(block, std::move(x), next, /*keep=*/false, pool);
  }
  return last.run_to_float(x.snaked);
}

at::Tensor Oobleck::run_end_in_parts(const Signal& x, SignalPool& pool) const {
  // A part has kPartRows rows and reads kContext more rows at each end. The last convolution needs three samples on
  // each side, and each row becomes at least one sample.
  constexpr int64_t kPartRows = 512, kContext = 3;
  const Convolution& resample = blocks.back().resample;
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < x.length; begin += kPartRows) {
    const int64_t from = std::max<int64_t>(begin - kContext, 0), end = std::min(begin + kPartRows, x.length);
    const int64_t to = std::min(end + kContext, x.length);
    // This part is a view, so its halo contains the rows next to it in x.
    const Signal part = x.part(from, to - from);
    const at::Tensor y = last.run_to_float(resample(part, {.snake = &last_snake}, pool).snaked);
    const int64_t first_sample = (begin - from) * resample.stride();
    const int64_t last_sample = end == x.length ? y.size(2) : (end - from) * resample.stride();
    parts.push_back(y.slice(2, first_sample, last_sample));
  }
  return at::cat(parts, 2);
}

int64_t tile_overlap_frames(const VaeConfig& config) {
  constexpr double kEndReach = 3;     // samples on each side of a convolution with kernel 7
  constexpr double kUnitsReach = 39;  // samples on each side of three such convolutions with dilations 1, 3 and 9
  double reach = kEndReach, samples_per_frame = 1;
  for (auto ratio = config.downsampling_ratios.rbegin(); ratio != config.downsampling_ratios.rend(); ++ratio) {
    reach += 1 / samples_per_frame;  // a transposed convolution reads one sample before
    samples_per_frame *= static_cast<double>(*ratio);
    reach += kUnitsReach / samples_per_frame;
  }
  return static_cast<int64_t>(std::ceil(reach + kEndReach / samples_per_frame)) + 1;
}

std::vector<Tile> plan_tiles(int64_t frames, int64_t overlap, const TileWidths& widths) {
  int64_t width = widths.first;
  if (frames <= width) return {{0, frames, 0, frames}};
  if (width <= 2 * overlap) {
    fail(ErrorCode::kBadArgument, "a tile of " + std::to_string(width) + " frames is not wider than its overlaps");
  }
  std::vector<Tile> tiles;
  for (int64_t begin = 0; begin < frames; width = std::min(2 * width, widths.window)) {
    const int64_t from = std::max<int64_t>(0, begin - overlap);
    const int64_t window_end = std::min(from + width, frames);
    const int64_t end = window_end == frames ? frames : window_end - overlap;
    tiles.push_back({begin, end, widths.has_full_last_tile ? window_end - width : from, window_end});
    begin = end;
  }
  return tiles;
}

int64_t window_frames(const Placement& placement) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  int64_t memory = 0;
  for (const DeviceInfo& device : list_devices()) {
    if (device.name == placement.device.str()) memory = device.memory_bytes;
  }
  return memory >= 22 * kGibibyte ? 512 : memory >= 15 * kGibibyte ? 384 : memory >= 11 * kGibibyte ? 256 : 128;
}

namespace {

/// Number of items per run: on a GPU as many as fit one window, on a CPU one. A CPU gains nothing from larger batches,
/// and libtorch's convolutions round differently for each batch size, so songs would depend on the rest of their batch.
int64_t group_size(const at::Tensor& batch, int64_t frames, int64_t window) {
  return batch.is_cpu() ? 1 : std::clamp<int64_t>(window / frames, 1, batch.size(0));
}

/// Width of the first tile. Only time-major networks get a narrow first tile, because only their results do not depend
/// on the widths of tiles.
int64_t first_window(const Oobleck& network, int64_t window) {
  constexpr int64_t kFirstTile = 128;  // playback starts after this tile
  return network.is_time_major() ? std::min(kFirstTile, window) : window;
}

}  // namespace

std::vector<at::Tensor> decode_tiled(const Oobleck& decoder, const at::Tensor& latents, const VaeConfig& config,
                                     int64_t window, const Control& control, const OnTile& on_tile) {
  const int64_t batch = latents.size(0), frames = latents.size(2), hop = config.samples_per_frame();
  const bool on_cpu = latents.is_cpu();
  const std::vector<Tile> tiles = plan_tiles(
      frames, tile_overlap_frames(config),
      {.window = window, .first = first_window(decoder, window), .has_full_last_tile = !on_cpu});
  const int64_t group = group_size(latents, frames, window);
  const int64_t total = (batch + group - 1) / group * static_cast<int64_t>(tiles.size());
  int64_t done = 0;
  SignalPool pool;
  std::vector<at::Tensor> decoded;
  for (int64_t first_item = 0; first_item < batch; first_item += group) {
    const at::Tensor part = latents.narrow(0, first_item, std::min(group, batch - first_item));
    const at::Tensor audio =
        at::empty({part.size(0), config.audio_channels, frames * hop}, latents.options().dtype(at::kFloat));
    for (const Tile& tile : tiles) {
      control.report(Stage::kDecode, done++, total);
      const at::Tensor input = part.slice(2, tile.window_begin, tile.window_end);
      const int64_t first = tile.begin - tile.window_begin, count = tile.end - tile.begin;
      const at::Tensor kept = decoder.decode(input, pool).narrow(2, first * hop, count * hop);
      if (on_tile) on_tile(first_item, tile.begin * hop, kept);
      audio.narrow(2, tile.begin * hop, count * hop).copy_(kept);
    }
    const auto pinned = at::TensorOptions(at::kFloat).pinned_memory(true);
    for (const at::Tensor& item : audio.unbind(0)) {
      decoded.push_back(on_cpu ? item : at::empty(item.sizes(), pinned).copy_(item));
    }
  }
  control.report(Stage::kDecode, total, total);
  return decoded;
}

at::Tensor encode_tiled(const Oobleck& encoder, const at::Tensor& audio, const VaeConfig& config, int64_t window,
                        const Control& control) {
  const int64_t batch = audio.size(0), samples = audio.size(2), hop = config.samples_per_frame();
  const int64_t frames = samples / hop;
  const at::Tensor moments = at::empty({batch, config.encoder_hidden_size, frames}, at::kFloat);
  // The last tile needs no full width: it includes the samples of an incomplete frame, so its shape differs anyway.
  const std::vector<Tile> tiles = plan_tiles(frames, tile_overlap_frames(config), {.window = window});
  const int64_t group = group_size(audio, frames, window);
  const int64_t total = (batch + group - 1) / group * static_cast<int64_t>(tiles.size());
  int64_t done = 0;
  SignalPool pool;
  for (int64_t item = 0; item < batch; item += group) {
    const int64_t items = std::min(group, batch - item);
    for (const Tile& tile : tiles) {
      control.report(Stage::kConditions, done++, total);
      // The samples of an incomplete last frame are only context for the frame before it.
      const int64_t end = tile.window_end == frames ? samples : tile.window_end * hop;
      const at::Tensor input = audio.narrow(0, item, items).slice(2, tile.window_begin * hop, end);
      const int64_t first = tile.begin - tile.window_begin, count = tile.end - tile.begin;
      const at::Tensor kept = encoder.encode(input, pool).narrow(2, first, count);
      moments.narrow(0, item, items).narrow(2, tile.begin, count).copy_(kept);
    }
  }
  control.report(Stage::kConditions, total, total);
  return moments;
}

}  // namespace carillon
