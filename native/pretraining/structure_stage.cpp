#include "pretraining/structure_stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "pretraining/train_state.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kHeldOutCrops = 32, kFewestFrames = 8;
constexpr int64_t kEdgeFrames = 3;  // windows of the structure reach beyond the crop there
constexpr double kDriftWeight = 2;

}  // namespace

StructureStage::StructureStage(const VaeConfig& config, const Pieces& pieces, const Checkpoint& vae, int64_t batch,
                               double crop_seconds, const Placement& placement)
    : config_(config),
      structure_(config, placement.device),
      frozen_(
          Oobleck::load_encoder(vae.weights(placement).sub("encoder"), config, can_run_time_major(placement, config))),
      batch_(batch),
      crop_samples_(
          std::max<int64_t>(kFewestFrames, std::llround(crop_seconds * static_cast<double>(config.sampling_rate) /
                                                        static_cast<double>(config.samples_per_frame()))) *
          config.samples_per_frame()),
      device_(placement.device) {
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

void StructureStage::begin(Parameters& parameters, const VaeConfig& config, const std::string& vae_state) {
  const LatentParts parts = LatentParts::of(config);
  const int64_t waves = parts.waves, others = parts.beats + parts.structure;
  const std::string last_block = "encoder.block." + std::to_string(config.downsampling_ratios.size() - 1);
  for (const auto& [name, stored] : TrainState::read_average(vae_state)) {
    at::Tensor tensor = stored.to(at::kFloat).clone();
    if (name == "encoder.conv2.weight" || name == "encoder.conv2.bias") tensor.narrow(0, waves, others).zero_();
    if (name == "decoder.conv1.weight") tensor.narrow(1, waves, others).zero_();
    // Amplitudes are even functions of the transform's coefficients: snakes that are nearly straight get a bend.
    const bool in_last_block = name.rfind(last_block, 0) == 0;
    if (in_last_block && name.find("snake2.") != std::string::npos) tensor.zero_();
    if (name == "encoder.snake1.beta") tensor.narrow(1, waves, tensor.size(1) - waves).zero_();
    parameters.set(name, tensor);
  }
}

StructureStage::Frozen StructureStage::run_frozen(const at::Tensor& audio, at::ScalarType dtype) const {
  const at::NoGradGuard no_grad;
  SignalPool pool;
  std::vector<at::Tensor> plain, snaked, means;
  const auto channels_first = [&](const Signal& signal) {
    if (!frozen_.time_major) return signal.data;
    return signal.data.narrow(0, Signal::kHalo, signal.length).t().unsqueeze(0).to(dtype).contiguous();
  };
  for (int64_t item = 0; item < audio.size(0); ++item) {  // time-major networks take one at a time
    Convolution::Result below = frozen_.encode_to_last_block(audio.narrow(0, item, 1), pool);
    plain.push_back(channels_first(below.plain));
    snaked.push_back(channels_first(below.snaked));
    means.push_back(frozen_.encode_last_block(std::move(below), pool));
  }
  const int64_t length = plain.front().size(2);
  return {{{at::cat(plain), length}, {at::cat(snaked), length}}, at::cat(means)};
}

StructureStage::Errors StructureStage::errors(const Weights& weights, const at::Tensor& audio) const {
  Frozen frozen = run_frozen(audio, weights.placement().dtype);
  SignalPool pool;
  const Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config_, /*time_major=*/false);
  const at::Tensor encoded = encoder.encode_last_block(std::move(frozen.below), pool);
  const LatentParts parts = LatentParts::of(config_);
  const auto inner = [](const at::Tensor& all) { return all.slice(2, kEdgeFrames, all.size(2) - kEdgeFrames); };
  return {at::mse_loss(inner(encoded.narrow(1, parts.first_of_structure(), parts.structure)), inner(structure_(audio))),
          at::mse_loss(encoded.narrow(1, 0, parts.waves), frozen.means.narrow(1, 0, parts.waves))};
}

Loss StructureStage::loss(const Weights& weights, Draw& draw) const {
  std::vector<at::Tensor> crops;
  for (int64_t item = 0; item < batch_; ++item) {
    const Wav& wav = train_[static_cast<size_t>(draw.below(std::ssize(train_)))];
    crops.push_back(wav.read(draw.below(std::max<int64_t>(1, wav.samples() - crop_samples_)), crop_samples_));
  }
  const Errors found = errors(weights, at::stack(crops).to(device_));
  return {found.structure + kDriftWeight * found.drift, {{"structure", found.structure}, {"drift", found.drift}}};
}

Figures StructureStage::measure(const Weights& weights) const {
  const Errors found = errors(weights, held_out_.to(device_));
  return {{"structure", found.structure.item<double>()}, {"drift", found.drift.item<double>()}};
}

}  // namespace carillon::pretraining
