#include "pretraining/vae_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "pretraining/lapped_transform.h"

namespace carillon::pretraining {
namespace {

constexpr double kDivergenceWeight = 0.005, kScaleWeight = 0.02;
constexpr int64_t kHeldOutCrops = 24, kFirstCrops = 48;
constexpr double kSmallestDeviation = 0.05;

/// Of N(mean, std) from N(0, 1), per latent value.
at::Tensor divergence(const Posterior& posterior) {
  return (0.5 * (posterior.mean.square() + posterior.std.square() - 1) - posterior.std.log()).mean();
}

/// How far the channels are from mean 0 and variance 1 over the batch.
at::Tensor scale_error(const at::Tensor& mean) {
  const at::Tensor by_channel = mean.transpose(0, 1).flatten(1);
  return by_channel.mean(1).square().mean() + (by_channel.var(1) - 1).square().mean();
}

}  // namespace

VaeStage::VaeStage(const VaeConfig& config, const Pieces& pieces, int64_t batch, double crop_seconds,
                   at::Device device)
    : config_(config),
      batch_(batch),
      crop_samples_(std::max<int64_t>(2, std::llround(crop_seconds * static_cast<double>(config.sampling_rate) /
                                                      static_cast<double>(config.samples_per_frame()))) *
                    config.samples_per_frame()),
      device_(device),
      error_(config.sampling_rate, device) {
  for (const Piece& piece : pieces.train) {
    train_.push_back(Wav::open(piece.mix));
    train_.push_back(train_.back());  // mixes weigh as much as stems together would with two of them
    for (const auto& [track, path] : piece.stems) train_.push_back(Wav::open(path));
  }
  std::vector<at::Tensor> crops;
  const auto count = std::min<int64_t>(kHeldOutCrops, static_cast<int64_t>(pieces.held_out.size()));
  for (int64_t i = 0; i < count; ++i) {
    const Wav wav = Wav::open(pieces.held_out[static_cast<size_t>(i)].mix);
    crops.push_back(wav.read(std::max<int64_t>(0, (wav.samples() - crop_samples_) / 2), crop_samples_));
  }
  held_out_ = at::stack(crops);
}

void VaeStage::begin(Parameters& parameters) const {
  if (parameters.has("encoder.conv1.weight")) return;
  begin_as_lapped_transform(parameters, config_);
  const at::NoGradGuard no_grad;
  Draw draw(0, 0);
  const std::shared_ptr<Parameters> borrowed(std::shared_ptr<Parameters>(), &parameters);
  const Weights weights = Checkpoint::of(borrowed).weights({device_, at::kFloat});
  std::vector<at::Tensor> means;
  for (int64_t i = 0; i < kFirstCrops; ++i) means.push_back(encode(weights, config_, crops(1, draw)).mean);
  scale_latents(parameters, at::cat(means).transpose(0, 1).flatten(1).std(1) + kSmallestDeviation);
}

at::Tensor VaeStage::crops(int64_t count, Draw& draw) const {
  std::vector<at::Tensor> crops;
  for (int64_t item = 0; item < count; ++item) {
    const Wav& wav = train_[static_cast<size_t>(draw.below(static_cast<int64_t>(train_.size())))];
    const at::Tensor crop = wav.read(draw.below(std::max<int64_t>(1, wav.samples() - crop_samples_)), crop_samples_);
    crops.push_back(crop * (0.5 + 0.7 * draw.uniform()));  // loudness varies from piece to piece
  }
  return at::stack(crops).to(device_);
}

Loss VaeStage::loss(const Weights& weights, Draw& draw) const {
  const at::Tensor audio = crops(batch_, draw);
  const Posterior posterior = encode(weights, config_, audio);
  const at::Tensor noise = draw.normal(posterior.mean.sizes()).to(device_);
  const at::Tensor made = decode(weights, config_, posterior.mean + posterior.std * noise);
  Loss loss = error_.loss(made, audio);
  loss.parts["divergence"] = divergence(posterior);
  loss.parts["scaleError"] = scale_error(posterior.mean);
  loss.total = loss.total + kDivergenceWeight * loss.parts["divergence"] + kScaleWeight * loss.parts["scaleError"];
  return loss;
}

Figures VaeStage::measure(const Weights& weights) const {
  return error_.measure(held_out_, [&](int64_t index) {
    const at::Tensor audio = held_out_.narrow(0, index, 1).to(device_);
    return decode(weights, config_, encode(weights, config_, audio).mean);
  });
}

}  // namespace carillon::pretraining
