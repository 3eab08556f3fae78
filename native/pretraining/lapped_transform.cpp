#include "pretraining/lapped_transform.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace carillon::pretraining {
namespace {

constexpr double kQuiet = 0.02;        // of what the transform does not use
constexpr double kSnakeGain = 0.05;    // close to a straight line
constexpr double kMiddleShare = 0.875; // of the latents; the rest are of the side
constexpr double kSpread = -3;         // of the posterior at first: softplus of it is 0.05

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

/// The lowest bands that fit into `width` channels, of the bins of every band of the stage before: middle and side
/// have the share of them that they have of the latents.
std::vector<Band> lowest_bands(const std::vector<Band>& before, int64_t stride, int64_t width) {
  std::vector<Band> bands;
  for (const int64_t side : {0, 1}) {
    const auto there = stride * std::count_if(before.begin(), before.end(), [&](Band band) { return band.side == side; });
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

/// Left and right to middle and side: [out, 2, 7], and back with the first two sizes exchanged.
at::Tensor middle_side(int64_t out) {
  at::Tensor matrix = at::zeros({out, 2, 7});
  const float half = std::sqrt(0.5f);
  matrix[0].select(1, 3).fill_(half);
  matrix[1][0][3] = half;
  matrix[1][1][3] = -half;
  return matrix;
}

std::vector<int64_t> widths(int64_t base, const VaeConfig& config) {
  std::vector<int64_t> all = {base};
  for (const int64_t multiple : config.channel_multiples) all.push_back(base * multiple);
  return all;
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
    const at::Tensor noise = parameters_.leaf(prefix_ + name + ".weight", weight.sizes()).detach();
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

void write_encoder(Parameters& parameters, const VaeConfig& config) {
  const std::vector<int64_t> channels = widths(config.encoder_hidden_size, config);
  const auto stages = cascade(channels, config);
  const Writer writer(parameters, "encoder.");
  writer.convolution("conv1", middle_side(channels[0]), true);
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    const std::string block = "block." + std::to_string(i);
    writer.units(block, channels[i], /*silent=*/i == 0);
    writer.snake(block + ".snake1", channels[i]);
    writer.convolution(block + ".conv1",
                       stage_matrix(stages[i], stages[i + 1], config.downsampling_ratios[i], channels[i], channels[i + 1]),
                       true);
  }
  writer.snake("snake1", channels.back());
  at::Tensor means = at::zeros({config.encoder_hidden_size, channels.back(), 3});
  const auto latents = lowest_bands(stages[stages.size() - 2], config.downsampling_ratios.back(), config.decoder_input_channels);
  const auto& bands = stages.back();
  for (size_t latent = 0; latent < latents.size(); ++latent) {
    const auto same = [&](Band band) { return band.side == latents[latent].side && band.index == latents[latent].index; };
    const auto found = std::find_if(bands.begin(), bands.end(), same) - bands.begin();
    means[static_cast<int64_t>(latent)][found][1] = 1;
  }
  writer.convolution("conv2", means, true);
  at::Tensor bias = at::zeros({config.encoder_hidden_size});
  bias.slice(0, config.decoder_input_channels).fill_(kSpread);
  parameters.set("encoder.conv2.bias", bias);
}

void write_decoder(Parameters& parameters, const VaeConfig& config) {
  const std::vector<int64_t> channels = widths(config.decoder_channels, config);
  const auto stages = cascade(channels, config);
  const size_t count = config.downsampling_ratios.size();
  Writer writer(parameters, "decoder.");
  const auto latents = lowest_bands(stages[count - 1], config.downsampling_ratios.back(), config.decoder_input_channels);
  const auto& bands = stages.back();
  at::Tensor first = at::zeros({channels.back(), config.decoder_input_channels, 7});
  for (size_t band = 0; band < bands.size(); ++band) {
    const auto same = [&](Band latent) { return latent.side == bands[band].side && latent.index == bands[band].index; };
    const auto found = std::find_if(latents.begin(), latents.end(), same);
    if (found != latents.end()) first[static_cast<int64_t>(band)][found - latents.begin()][3] = 1;
  }
  writer.convolution("conv1", first, true);
  for (size_t i = 0; i < count; ++i) {
    const size_t level = count - i;
    const std::string block = "block." + std::to_string(i);
    writer.snake(block + ".snake1", channels[level]);
    writer.transposed(block + ".conv_t1", stage_matrix(stages[level - 1], stages[level],
                                                       config.downsampling_ratios[level - 1], channels[level - 1],
                                                       channels[level]));
    writer.units(block, channels[level - 1], /*silent=*/level == 1);
  }
  writer.snake("snake1", channels[0]);
  writer.convolution("conv2", middle_side(channels[0]).transpose(0, 1).contiguous(), false);
}

}  // namespace

void begin_as_lapped_transform(Parameters& parameters, const VaeConfig& config) {
  write_encoder(parameters, config);
  write_decoder(parameters, config);
}

void scale_latents(Parameters& parameters, const at::Tensor& deviations) {
  const at::NoGradGuard no_grad;
  const int64_t latents = deviations.size(0);
  const at::Tensor encoder = parameters.leaves().at("encoder.conv2.weight").detach();
  encoder.narrow(0, 0, latents).div_(deviations.view({-1, 1, 1}));
  parameters.leaves().at("encoder.conv2.bias").detach().narrow(0, 0, latents).div_(deviations);
  parameters.leaves().at("decoder.conv1.weight").detach().mul_(deviations.view({1, -1, 1}));
}

}  // namespace carillon::pretraining
