#include "pretraining/encoder_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "pretraining/encoder_start.h"
#include "pretraining/lapped_transform.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kHeldOutCrops = 32, kFirstCrops = 400, kFewestFrames = 8;
constexpr int64_t kEdgeFrames = 3;  // windows of the space reach beyond the crop there

}  // namespace

EncoderStage::EncoderStage(const VaeConfig& config, const Pieces& pieces, LatentSpace space, int64_t batch,
                           double crop_seconds, at::Device device)
    : config_(config),
      space_(std::move(space)),
      batch_(batch),
      crop_samples_(
          std::max<int64_t>(kFewestFrames, std::llround(crop_seconds * static_cast<double>(config.sampling_rate) /
                                                        static_cast<double>(space_.hop()))) *
          space_.hop()),
      device_(device) {
  filters_ = lapped_filters(exact_strides(config_), space_.band_deviations().size(0));
  for (const Piece& piece : pieces.train) {
    train_.push_back(Wav::open(piece.mix));
    for (const auto& [track, path] : piece.stems) train_.push_back(Wav::open(path));
  }
  std::vector<at::Tensor> crops;
  for (const Piece& piece : pieces.held_out) {
    if (std::ssize(crops) == kHeldOutCrops) break;
    const Wav wav = Wav::open(piece.mix);
    crops.push_back(wav.read(std::max<int64_t>(0, (wav.samples() - crop_samples_) / 2), crop_samples_));
  }
  held_out_ = at::stack(crops);
}

at::Tensor EncoderStage::bands(const at::Tensor& audio) const {
  const int64_t channels = config_.encoder_hidden_size * config_.channel_multiples[kExactBlocks - 1];
  const at::Tensor bands =
      lapped_transform(audio, filters_, exact_strides(config_)) / space_.band_deviations().view({-1, 1});
  return at::constant_pad_nd(bands, {0, 0, 0, channels - bands.size(1)}).to(device_);
}

void EncoderStage::begin(Parameters& parameters) const {
  if (parameters.has("encoder.conv1.weight")) return;
  Draw draw(0, 0);
  begin_encoder(parameters, config_, space_, crops(kFirstCrops, draw));
}

at::Tensor EncoderStage::encoded(const Weights& weights, const at::Tensor& audio) const {
  SignalPool pool;
  const Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config_, /*time_major=*/false);
  const at::Tensor all = encoder.encode_from(kExactBlocks, bands(audio).to(weights.placement().dtype), pool);
  return all.narrow(1, 0, config_.decoder_input_channels).slice(2, kEdgeFrames, all.size(2) - kEdgeFrames);
}

at::Tensor EncoderStage::wanted(const at::Tensor& audio) const {
  const at::Tensor all = space_(audio).to(device_);
  return all.slice(2, kEdgeFrames, all.size(2) - kEdgeFrames);
}

at::Tensor EncoderStage::crops(int64_t count, Draw& draw) const {
  std::vector<at::Tensor> crops;
  for (int64_t item = 0; item < count; ++item) {
    const Wav& wav = train_[static_cast<size_t>(draw.below(std::ssize(train_)))];
    const at::Tensor crop = wav.read(draw.below(std::max<int64_t>(1, wav.samples() - crop_samples_)), crop_samples_);
    crops.push_back(crop * (0.5 + 0.7 * draw.uniform()));  // loudness varies from piece to piece
  }
  return at::stack(crops);
}

Loss EncoderStage::loss(const Weights& weights, Draw& draw) const {
  const at::Tensor audio = crops(batch_, draw);
  const at::Tensor error = at::mse_loss(encoded(weights, audio), wanted(audio));
  return {error, {{"error", error}}};
}

Figures EncoderStage::measure(const Weights& weights) const {
  const at::Tensor target = wanted(held_out_), error = encoded(weights, held_out_) - target;
  const LatentParts parts = LatentParts::of(config_);
  Figures figures;
  const auto add = [&](const char* name, int64_t first, int64_t count) {
    if (count == 0) return;
    const at::Tensor channels = target.narrow(1, first, count);
    const at::Tensor variance = (channels - channels.mean({0, 2}, /*keepdim=*/true)).square().mean();
    figures[name] = (error.narrow(1, first, count).square().mean() / variance).item<double>();
  };
  add("waves", 0, parts.waves);
  add("timbre", parts.first_of_structure(), parts.timbre);
  add("pitches", parts.first_of_structure() + parts.timbre, parts.pitches);
  return figures;
}

}  // namespace carillon::pretraining
