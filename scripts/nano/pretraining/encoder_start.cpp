#include "pretraining/encoder_start.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/runtime/error.h"
#include "pretraining/lapped_transform.h"

namespace carillon::pretraining {
namespace {

constexpr std::array<double, 3> kFrequencies = {0.15, 0.6, 2.4};  // of a band of deviation 1
constexpr double kLinear = 0.1;                                   // of the band itself, beside the sine's square
constexpr double kPitchFrequency = 1.2;
constexpr double kStraightGain = 0.01, kNoGain = 1e-9;  // of a snake that is nearly straight, or straight
constexpr double kSmallestDeviation = 1e-4;
constexpr double kRidge = 1e-4;
constexpr double kSpread = -3;        // of the posterior: softplus of it is 0.05
constexpr double kLowestPitch = 100;  // Hz
constexpr int64_t kEdgeFrames = 3;

int64_t width_after(const VaeConfig& config, size_t block) {
  return config.encoder_hidden_size * config.channel_multiples[block];
}

at::Tensor deviations_of(const at::Tensor& signal) {
  return signal.transpose(0, 1).flatten(1).std(1) + kSmallestDeviation;
}

/// What three units add up of bands of deviation 1.
at::Tensor loudness(const at::Tensor& bands) {
  at::Tensor sum = at::zeros_like(bands);
  for (const double frequency : kFrequencies) sum = sum + kLinear * bands + (frequency * bands).sin().square();
  return sum;
}

/// What a convolution reads for every output: signal [B, channels, T] -> [B, T', channels * kernel].
at::Tensor taps(const at::Tensor& signal, int64_t kernel, int64_t stride, int64_t padding) {
  const at::Tensor windows = at::constant_pad_nd(signal, {padding, padding}).unfold(2, kernel, stride);
  return windows.transpose(1, 2).flatten(2);
}

struct Fit {
  at::Tensor weight, bias;  // [outputs, inputs], [outputs]
};

/// Ridge regression of targets [B, outputs, T] on inputs [B, T, inputs], without the edges.
Fit least_squares(const at::Tensor& inputs, const at::Tensor& targets) {
  const auto inner = [](const at::Tensor& all) {
    return all.slice(1, kEdgeFrames, all.size(1) - kEdgeFrames).flatten(0, 1).to(at::kDouble);
  };
  const at::Tensor x = inner(inputs), y = inner(targets.transpose(1, 2));
  const at::Tensor mean_x = x.mean(0), mean_y = y.mean(0), centred = x - mean_x;
  const at::Tensor covariance = at::matmul(centred.t(), centred);
  const at::Tensor ridge = kRidge * covariance.diagonal().mean() * at::eye(x.size(1), at::kDouble);
  const at::Tensor weight =
      at::linalg_solve(covariance + ridge, at::matmul(centred.t(), y - mean_y), /*left=*/true).t();
  return {weight.to(at::kFloat), (mean_y - at::matmul(weight, mean_x)).to(at::kFloat)};
}

/// Writes the blocks one after another, and follows what the audio becomes in them.
class EncoderStart {
 public:
  EncoderStart(Parameters& parameters, const VaeConfig& config, const LatentSpace& space, const at::Tensor& audio)
      : parameters_(parameters), config_(config), space_(space), audio_(audio), parts_(LatentParts::of(config)) {}

  void write() {
    write_exact_blocks();
    const size_t block = kExactBlocks;
    const at::Tensor filters = lapped_filters(exact_strides(config_), exact_bands(config_));
    at::Tensor bands =
        lapped_transform(audio_, filters, exact_strides(config_)) / space_.band_deviations().view({-1, 1});
    write_units(block, bands.size(1));
    at::Tensor signal = write_bands(block, bands);
    write_units(block + 1, bands_after(block));
    signal = add_loudness(signal, bands_after(block));
    signal = write_last_block(block + 1, signal);
    write_latents(signal);
  }

 private:
  std::string block_name(size_t block) const { return "encoder.block." + std::to_string(block); }
  int64_t stride(size_t block) const { return config_.downsampling_ratios[block]; }
  int64_t padding(size_t block) const { return (stride(block) + 1) / 2; }

  void set_snake(const std::string& name, int64_t channels, double frequency, double gain) {
    parameters_.set(name + ".alpha", at::full({1, channels, 1}, std::log(frequency)));
    parameters_.set(name + ".beta", at::full({1, channels, 1}, -std::log(gain)));
  }
  void set_convolution(const std::string& name, const at::Tensor& weight, const at::Tensor& bias) {
    parameters_.set(name + ".weight", weight);
    parameters_.set(name + ".bias", bias);
  }

  void write_exact_blocks() {
    const int64_t first = config_.encoder_hidden_size;
    set_convolution("encoder.conv1", middle_and_side_weight(first), at::zeros({first}));
    int64_t before = 1;
    for (size_t block = 0; block < kExactBlocks; ++block) {
      const int64_t in = block == 0 ? first : width_after(config_, block - 1), out = width_after(config_, block);
      const bool is_last = block + 1 == kExactBlocks;
      const int64_t bands = std::min(is_last ? exact_bands(config_) : out, before * stride(block));
      at::Tensor weight = at::zeros({out, in, 2 * stride(block)});
      weight.narrow(0, 0, bands).narrow(1, 0, before).copy_(lapped_matrix(before, lowest(bands), stride(block)));
      if (is_last) weight.narrow(0, 0, bands).div_(space_.band_deviations().view({-1, 1, 1}));
      silence_units(block, in);
      set_snake(block_name(block) + ".snake1", in, 1, kNoGain);
      set_convolution(block_name(block) + ".conv1", weight, at::zeros({out}));
      before = bands;
    }
  }

  void silence_units(size_t block, int64_t channels) {
    for (int unit = 1; unit <= 3; ++unit) {
      const std::string name = block_name(block) + ".res_unit" + std::to_string(unit);
      set_convolution(name + ".conv2", at::zeros({channels, channels, 1}), at::zeros({channels}));
    }
  }

  /// Units that add the loudness of the first `bands` channels to as many after them.
  void write_units(size_t block, int64_t bands) {
    const int64_t channels = width_after(config_, block - 1);
    for (size_t index = 0; index < kFrequencies.size(); ++index) {
      const std::string name = block_name(block) + ".res_unit" + std::to_string(index + 1);
      at::Tensor listen = at::zeros({channels, channels, 7}), add = at::zeros({channels, channels, 1});
      listen.select(2, 3).diagonal().narrow(0, 0, bands).fill_(kLinear);
      add.select(2, 0).narrow(0, bands, bands).diagonal().fill_(1);
      set_snake(name + ".snake1", channels, 1, kStraightGain);
      set_snake(name + ".snake2", channels, kFrequencies[index] / kLinear, 1);
      set_convolution(name + ".conv1", listen, at::zeros({channels}));
      set_convolution(name + ".conv2", add, at::zeros({channels}));
    }
    set_snake(block_name(block) + ".snake1", channels, 1, kStraightGain);
  }

  static at::Tensor add_loudness(const at::Tensor& signal, int64_t bands) {
    at::Tensor sum = signal.clone();
    sum.narrow(1, bands, bands).add_(loudness(signal.narrow(1, 0, bands)));
    return sum;
  }

  /// Loudnesses that the block before the last hands on, of two neighbouring bands each.
  int64_t loudnesses() const { return exact_bands(config_) / 2; }
  /// Of the narrower bands that it gives, with as many channels for their own loudness.
  int64_t bands_after(size_t block) const {
    return std::min((width_after(config_, block) - loudnesses()) / 2, exact_bands(config_) * stride(block));
  }

  /// The block before the last: narrower bands, and the loudness of those that it got.
  at::Tensor write_bands(size_t block, const at::Tensor& bands) {
    const int64_t in = width_after(config_, block - 1), out = width_after(config_, block), count = bands.size(1);
    const int64_t narrower = bands_after(block), taps = 2 * stride(block);
    at::Tensor weight = at::zeros({out, in, taps});
    weight.narrow(0, 0, narrower)
        .narrow(1, 0, count)
        .copy_(lapped_matrix(count, lowest(narrower), stride(block)) * space_.band_deviations().view({1, -1, 1}));
    for (int64_t pair = 0; pair < loudnesses(); ++pair) {
      weight[2 * narrower + pair].narrow(0, count + 2 * pair, 2).fill_(1 / static_cast<double>(2 * taps));
    }
    const at::Tensor all = at::constant_pad_nd(at::cat({bands, loudness(bands)}, 1), {0, 0, 0, in - 2 * count});
    deviations_ = deviations_of(at::conv1d(all, weight.narrow(0, 0, narrower), {}, stride(block), padding(block)));
    weight.narrow(0, 0, narrower).div_(deviations_.view({-1, 1, 1}));
    set_convolution(block_name(block) + ".conv1", weight, at::zeros({out}));
    return at::conv1d(all, weight, {}, stride(block), padding(block));
  }

  /// The last block: waves, a first guess of the structure from all loudnesses, and still narrower bands for pitches.
  at::Tensor write_last_block(size_t block, const at::Tensor& signal) {
    const int64_t in = signal.size(1), out = width_after(config_, block), count = deviations_.size(0);
    const int64_t kernel = 2 * stride(block), structure = parts_.structure();
    const auto narrower = [&](const std::vector<int64_t>& bands) {
      return lapped_matrix(count, bands, stride(block)) * deviations_.view({1, -1, 1});
    };
    at::Tensor weight = at::zeros({out, in, kernel}), bias = at::zeros({out});
    weight.narrow(0, 0, parts_.waves)
        .narrow(1, 0, count)
        .copy_(narrower(lowest(parts_.waves)) / space_.wave_deviations().view({-1, 1, 1}));
    const int64_t heard = in - count;
    const Fit fit =
        least_squares(taps(signal.narrow(1, count, heard), kernel, stride(block), padding(block)), wanted());
    weight.narrow(0, parts_.waves, structure)
        .narrow(1, count, heard)
        .copy_(fit.weight.view({structure, heard, kernel}));
    bias.narrow(0, parts_.waves, structure).copy_(fit.bias);
    const at::Tensor pitches = narrower(pitch_bands(block, out - parts_.waves - structure, count));
    const at::Tensor levels =
        deviations_of(at::conv1d(signal.narrow(1, 0, count), pitches, {}, stride(block), padding(block)));
    weight.narrow(0, parts_.waves + structure, pitches.size(0))
        .narrow(1, 0, count)
        .copy_(kLinear * pitches / levels.view({-1, 1, 1}));
    set_convolution(block_name(block) + ".conv1", weight, bias);
    return at::conv1d(signal, weight, bias, stride(block), padding(block));
  }

  /// At most `count` bands of what a block of `before` bands gives, from the lowest pitch on.
  std::vector<int64_t> pitch_bands(size_t block, int64_t count, int64_t before) const {
    const double hertz =
        static_cast<double>(config_.sampling_rate) / static_cast<double>(2 * config_.samples_per_frame());
    const int64_t available = before * stride(block),
                  first = std::min(std::llround(kLowestPitch / hertz), available - 1LL);
    std::vector<int64_t> bands = lowest(std::min(available, first + count));
    bands.erase(bands.begin(), bands.begin() + first);
    return bands;
  }

  /// The last snake and convolution: the waves as they are, the structure from its first guess and the narrowest bands.
  void write_latents(const at::Tensor& signal) {
    const int64_t channels = signal.size(1), latents = config_.decoder_input_channels,
                  straight = parts_.waves + parts_.structure();
    at::Tensor alpha = at::zeros({1, channels, 1}), beta = at::full({1, channels, 1}, -std::log(kStraightGain));
    alpha.narrow(1, straight, channels - straight).fill_(std::log(kPitchFrequency / kLinear));
    beta.narrow(1, straight, channels - straight).zero_();
    parameters_.set("encoder.snake1.alpha", alpha);
    parameters_.set("encoder.snake1.beta", beta);
    const at::Tensor snaked = signal + (alpha.exp() * signal).sin().square() / beta.exp();
    const Fit fit = least_squares(taps(snaked, 3, 1, 1), wanted());
    at::Tensor weight = at::zeros({config_.encoder_hidden_size, channels, 3});
    at::Tensor bias = at::zeros({config_.encoder_hidden_size});
    weight.narrow(0, 0, parts_.waves).select(2, 1).narrow(1, 0, parts_.waves).diagonal().fill_(1);
    weight.narrow(0, parts_.first_of_structure(), parts_.structure())
        .copy_(fit.weight.view({parts_.structure(), channels, 3}));
    bias.narrow(0, parts_.first_of_structure(), parts_.structure()).copy_(fit.bias);
    bias.slice(0, latents).fill_(kSpread);
    set_convolution("encoder.conv2", weight, bias);
  }

  at::Tensor wanted() const { return space_(audio_).narrow(1, parts_.first_of_structure(), parts_.structure()); }

  Parameters& parameters_;
  const VaeConfig& config_;
  const LatentSpace& space_;
  const at::Tensor& audio_;
  LatentParts parts_;
  at::Tensor deviations_;  // of the bands that the block before the last gives
};

}  // namespace

std::vector<int64_t> exact_strides(const VaeConfig& config) {
  return {config.downsampling_ratios.begin(), config.downsampling_ratios.begin() + kExactBlocks};
}

int64_t exact_bands(const VaeConfig& config) {
  int64_t bands = 1;
  for (const int64_t stride : exact_strides(config)) bands *= stride;
  return std::min(bands, width_after(config, kExactBlocks - 1) / 2);
}

void begin_encoder(Parameters& parameters, const VaeConfig& config, const LatentSpace& space, const at::Tensor& audio) {
  if (config.downsampling_ratios.size() != kExactBlocks + 2) {
    fail(ErrorCode::kBadArgument,
         "an encoder begins with four blocks, not " + std::to_string(config.downsampling_ratios.size()));
  }
  const at::NoGradGuard no_grad;
  EncoderStart(parameters, config, space, audio).write();
}

}  // namespace carillon::pretraining
