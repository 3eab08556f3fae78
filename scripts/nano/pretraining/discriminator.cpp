#include "pretraining/discriminator.h"

#include <ATen/ATen.h>

#include "pretraining/spectral.h"

namespace carillon::pretraining {
namespace {

constexpr double kPassingWeight = 0.8, kFeaturesWeight = 4;
constexpr double kFloor = 1e-4, kCentre = -7, kDeviation = 2;  // of the logarithm of magnitudes, about
constexpr double kLeak = 0.1;                                  // of rectifiers

struct Layer {
  int64_t channels;
  int64_t row_stride, hop_stride;
};
constexpr Layer kLayers[] = {{16, 2, 1}, {32, 2, 2}, {48, 2, 2}, {48, 2, 1}};
constexpr int64_t kKernel = 5, kInputs = 3;

/// Waves [B, samples] -> log magnitudes [B, bins, hops] of about unit scale.
at::Tensor log_spectrum(const at::Tensor& waves, const at::Tensor& hann) {
  const int64_t window = hann.size(0);
  const double scale = 2.0 / static_cast<double>(window);
  const at::Tensor energies = short_time_energies(waves, window / 4, hann);
  const at::Tensor magnitudes = (energies * (scale * scale) + kFloor * kFloor).sqrt();
  return (magnitudes.log() - kCentre) / kDeviation;
}

/// Middle, side and how high each bin is, [B, 3, bins, hops].
at::Tensor view_of(const at::Tensor& audio, const at::Tensor& hann) {
  const at::Tensor left = audio.select(1, 0), right = audio.select(1, 1);
  const at::Tensor middle = log_spectrum((left + right) / 2, hann), side = log_spectrum((left - right) / 2, hann);
  const at::Tensor height = at::linspace(-1, 1, middle.size(1), middle.options()).view({-1, 1}).expand_as(middle);
  return at::stack({middle, side, height}, 1);
}

/// The weights of one resolution, with or without gradients of their own.
struct Convolution {
  at::Tensor weight, bias;
};
std::vector<Convolution> load(const Weights& weights) {
  std::vector<Convolution> convolutions;
  int64_t inputs = kInputs;
  const auto add = [&](int64_t channels) {
    const Weights own = weights.sub(std::to_string(convolutions.size()));
    convolutions.push_back({own.get("weight", {channels, inputs, kKernel, kKernel}), own.get("bias", {channels})});
    inputs = channels;
  };
  for (const Layer& layer : kLayers) add(layer.channels);
  add(1);
  return convolutions;
}

std::vector<Convolution> frozen(const std::vector<Convolution>& convolutions) {
  std::vector<Convolution> still;
  for (const Convolution& own : convolutions) still.push_back({own.weight.detach(), own.bias.detach()});
  return still;
}

/// What every layer makes of a view; the last is the judgement of patches: 1 is played, 0 is decoded.
std::vector<at::Tensor> features(const std::vector<Convolution>& convolutions, const at::Tensor& view) {
  std::vector<at::Tensor> outputs;
  at::Tensor signal = view.to(convolutions[0].weight.scalar_type());
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool is_last = i == std::size(kLayers);
    const std::vector<int64_t> stride =
        is_last ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{kLayers[i].row_stride, kLayers[i].hop_stride};
    signal = at::conv2d(signal, convolutions[i].weight, convolutions[i].bias, stride, {kKernel / 2, kKernel / 2});
    if (!is_last) signal = at::leaky_relu(signal, kLeak);
    outputs.push_back(signal);
  }
  return outputs;
}

at::Tensor squared_distance(const at::Tensor& judgement, double target) {
  return (judgement.to(at::kFloat) - target).square().mean();
}

/// Mean over the layers, each relative to the size of its features.
at::Tensor feature_distance(const std::vector<at::Tensor>& made, const std::vector<at::Tensor>& real) {
  at::Tensor sum = at::zeros({}, made[0].options().dtype(at::kFloat));
  for (size_t i = 0; i < std::size(kLayers); ++i) {
    const at::Tensor played = real[i].detach().to(at::kFloat);
    sum = sum + (made[i].to(at::kFloat) - played).abs().mean() / played.abs().mean().clamp_min(kFloor);
  }
  return sum / static_cast<double>(std::size(kLayers));
}

}  // namespace

Discriminator::Discriminator(at::Device device) {
  for (const int64_t window : {2048, 512}) {
    hann_.push_back(at::hann_window(window, at::TensorOptions().dtype(at::kFloat).device(device)));
  }
}

Loss Discriminator::loss(const Weights& weights, const at::Tensor& made, const at::Tensor& real) const {
  const at::Tensor none = at::zeros({}, made.options());
  Loss loss{none, {{"passing", none}, {"features", none}, {"judging", none}}};
  const auto add = [&](const char* part, double weight, const at::Tensor& value) {
    const at::Tensor share = value / static_cast<double>(hann_.size());
    loss.parts[part] = loss.parts[part] + share;
    loss.total = loss.total + weight * share;
  };
  for (const at::Tensor& hann : hann_) {
    const auto convolutions = load(weights.sub(std::to_string(hann.size(0))));
    const at::Tensor view = view_of(made, hann);
    const auto of_real = features(convolutions, view_of(real, hann));
    const auto of_made = features(frozen(convolutions), view);
    const auto of_detached = features(convolutions, view.detach());
    add("passing", kPassingWeight, squared_distance(of_made.back(), 1));
    add("features", kFeaturesWeight, feature_distance(of_made, of_real));
    add("judging", 1, squared_distance(of_real.back(), 1) + squared_distance(of_detached.back(), 0));
  }
  return loss;
}

}  // namespace carillon::pretraining
