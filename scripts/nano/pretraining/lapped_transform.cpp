#include "pretraining/lapped_transform.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/vae/networks.h"
#include "pretraining/latent_parts.h"

namespace carillon::pretraining {
namespace {

constexpr double kQuiet = 0.02;         // of what the transform does not use
constexpr double kSnakeGain = 0.05;     // close to a straight line
constexpr double kMiddleShare = 0.875;  // of the decoder's channels; the rest are of the side

/// One channel of a stage: which of middle and side it is of, and which band of it, counted from 0 Hz.
struct Band {
  int64_t side, index;
};

/// cos(pi / s (n + 1/2 + s/2) (bin + 1/2)) under a sine window, for n in 0 .. 2 s - 1.
at::Tensor transform_row(int64_t stride, int64_t bin) {
  const auto s = static_cast<double>(stride);
  at::Tensor row = at::zeros({2 * stride});
  for (int64_t n = 0; n < 2 * stride; ++n) {
    const double time = static_cast<double>(n) + 0.5;
    const double window = std::sin(std::numbers::pi * time / (2 * s));
    const double wave = std::cos(std::numbers::pi / s * (time + s / 2) * (static_cast<double>(bin) + 0.5));
    row[n] = std::sqrt(2 / s) * window * wave;
  }
  return row;
}

/// The lowest bands that fit into `width` channels, of the bins of every band of the stage before: the middle has
/// kMiddleShare of them.
std::vector<Band> lowest_bands(const std::vector<Band>& before, int64_t stride, int64_t width) {
  std::vector<Band> bands;
  for (const int64_t side : {0, 1}) {
    const auto there =
        stride * std::count_if(before.begin(), before.end(), [&](Band band) { return band.side == side; });
    const auto middle = static_cast<int64_t>(kMiddleShare * static_cast<double>(width));
    const int64_t count = std::min<int64_t>(there, side == 0 ? middle : width - middle);
    for (int64_t index = 0; index < count; ++index) bands.push_back({side, index});
  }
  return bands;
}

/// [out, in, 2 stride]: row b computes band b from the bands before. Bins of an odd band come in reverse order.
at::Tensor stage_matrix(const std::vector<Band>& before, const std::vector<Band>& bands, int64_t stride, int64_t in,
                        int64_t out) {
  at::Tensor matrix = at::zeros({out, in, 2 * stride});
  for (size_t row = 0; row < bands.size(); ++row) {
    const int64_t parent = bands[row].index / stride, place = bands[row].index % stride;
    for (size_t column = 0; column < before.size(); ++column) {
      if (before[column].side != bands[row].side || before[column].index != parent) continue;
      matrix[static_cast<int64_t>(row)][static_cast<int64_t>(column)].copy_(
          transform_row(stride, parent % 2 == 0 ? place : stride - 1 - place));
    }
  }
  return matrix;
}

/// Bands after every stage, from middle and side themselves to the last.
std::vector<std::vector<Band>> cascade(const std::vector<int64_t>& widths, const VaeConfig& config) {
  std::vector<std::vector<Band>> stages = {{{0, 0}, {1, 0}}};
  for (size_t i = 0; i < config.downsampling_ratios.size(); ++i) {
    stages.push_back(lowest_bands(stages.back(), config.downsampling_ratios[i], widths[i + 1]));
  }
  return stages;
}

class Writer {
 public:
  Writer(Parameters& parameters, std::string prefix) : parameters_(parameters), prefix_(std::move(prefix)) {}

  /// What the transform leaves at zero gets small random values, so that training can use it.
  void convolution(const std::string& name, const at::Tensor& weight, bool has_bias) const {
    const double deviation = kQuiet / std::sqrt(static_cast<double>(weight.numel() / weight.size(0)));
    const at::Tensor noise = parameters_.leaf(prefix_ + name + ".weight", weight.sizes()).detach().cpu();
    const at::Tensor unit = noise / noise.std();
    parameters_.set(prefix_ + name + ".weight", weight + deviation * unit);
    if (has_bias) parameters_.set(prefix_ + name + ".bias", at::zeros({bias_size_ > 0 ? bias_size_ : weight.size(0)}));
  }
  void transposed(const std::string& name, const at::Tensor& weight) {
    bias_size_ = weight.size(1);
    convolution(name, weight, true);
    bias_size_ = 0;
  }
  void snake(const std::string& name, int64_t channels) const {
    parameters_.set(prefix_ + name + ".alpha", at::zeros({1, channels, 1}));
    parameters_.set(prefix_ + name + ".beta", at::full({1, channels, 1}, -std::log(kSnakeGain)));
  }
  void units(const std::string& block, int64_t channels, bool silent) const {
    for (int64_t unit = 1; unit <= 3; ++unit) {
      const std::string name = prefix_ + block + ".res_unit" + std::to_string(unit) + ".conv2";
      const at::Tensor weight = parameters_.leaf(name + ".weight", {channels, channels, 1}).detach();
      parameters_.set(name + ".weight", silent ? at::zeros_like(weight) : weight * kQuiet);
      parameters_.set(name + ".bias", at::zeros({channels}));
    }
  }

 private:
  Parameters& parameters_;
  std::string prefix_;
  int64_t bias_size_ = 0;
};

/// Where bands of the middle are among those of a stage; -1 for one that it has not.
int64_t place_of(const std::vector<Band>& bands, int64_t index) {
  const auto found =
      std::find_if(bands.begin(), bands.end(), [&](Band band) { return band.side == 0 && band.index == index; });
  return found == bands.end() ? -1 : found - bands.begin();
}

}  // namespace

at::Tensor lapped_matrix(int64_t before, const std::vector<int64_t>& bands, int64_t stride) {
  std::vector<Band> parents, children;
  for (int64_t index = 0; index < before; ++index) parents.push_back({0, index});
  for (const int64_t index : bands) children.push_back({0, index});
  return stage_matrix(parents, children, stride, before, std::ssize(bands));
}

at::Tensor middle_and_side_weight(int64_t channels) {
  at::Tensor matrix = at::zeros({channels, 2, 7});
  const float half = std::sqrt(0.5f);
  matrix[0].select(1, 3).fill_(half);
  matrix[1][0][3] = half;
  matrix[1][1][3] = -half;
  return matrix;
}

std::vector<int64_t> lowest(int64_t count) {
  std::vector<int64_t> bands(static_cast<size_t>(count));
  std::iota(bands.begin(), bands.end(), 0);
  return bands;
}

at::Tensor lapped_filters(const std::vector<int64_t>& strides, int64_t count) {
  std::vector<int64_t> needed = {count};  // of the last stage, of the one before, ...
  for (auto stride = strides.rbegin(); stride != strides.rend(); ++stride) {
    needed.push_back((needed.back() + *stride - 1) / *stride);
  }
  at::Tensor filters = at::ones({1, 1, 1});  // [bands, 1, samples]
  int64_t hop = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t in = needed[strides.size() - i], out = needed[strides.size() - i - 1];
    filters = at::conv_transpose1d(lapped_matrix(in, lowest(out), strides[i]), filters, {}, hop);
    hop *= strides[i];
  }
  return filters.squeeze(1);
}

at::Tensor lapped_transform(const at::Tensor& audio, const at::Tensor& filters, const std::vector<int64_t>& strides) {
  int64_t hop = 1, padding = 0;
  for (const int64_t stride : strides) {
    padding += hop * ((stride + 1) / 2);
    hop *= stride;
  }
  const at::Tensor middle = at::constant_pad_nd(audio.sum(1) * std::sqrt(0.5), {padding, padding});
  return at::matmul(filters, middle.unfold(1, filters.size(1), hop).transpose(1, 2));
}

void begin_decoder(Parameters& parameters, const VaeConfig& config, const at::Tensor& wave_deviations) {
  const std::vector<int64_t> channels = channel_widths(config.decoder_channels, config);
  const auto stages = cascade(channels, config);
  const size_t count = config.downsampling_ratios.size();
  Writer writer(parameters, "decoder.");
  at::Tensor first = at::zeros({channels.back(), config.decoder_input_channels, 7});
  for (int64_t wave = 0; wave < wave_deviations.size(0); ++wave) {
    const int64_t place = place_of(stages.back(), wave);
    if (place >= 0) first[place][wave][3] = wave_deviations[wave];
  }
  writer.convolution("conv1", first, true);
  const LatentParts parts = LatentParts::of(config);
  parameters.leaves().at("decoder.conv1.weight").detach().narrow(1, parts.waves, parts.beats).zero_();
  for (size_t i = 0; i < count; ++i) {
    const size_t level = count - i;
    const std::string block = "block." + std::to_string(i);
    writer.snake(block + ".snake1", channels[level]);
    writer.transposed(block + ".conv_t1",
                      stage_matrix(stages[level - 1], stages[level], config.downsampling_ratios[level - 1],
                                   channels[level - 1], channels[level]));
    writer.units(block, channels[level - 1], /*silent=*/level == 1);
  }
  writer.snake("snake1", channels[0]);
  writer.convolution("conv2", middle_and_side_weight(channels[0]).transpose(0, 1).contiguous(), false);
}

}  // namespace carillon::pretraining
