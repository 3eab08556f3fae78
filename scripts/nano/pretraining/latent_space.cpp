#include "pretraining/latent_space.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"
#include "pretraining/encoder_start.h"
#include "pretraining/lapped_transform.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {
namespace {

constexpr size_t kMeasuredPieces = 140;
constexpr int64_t kMeasuredFrames = 250;
constexpr double kSmallestWave = 0.05, kSmallestBand = 1e-4;  // deviations

/// From the middle of pieces of all kinds, [pieces, 2, samples].
at::Tensor crops(const std::vector<Piece>& pieces, int64_t samples) {
  const size_t count = std::min(kMeasuredPieces, pieces.size());
  std::vector<at::Tensor> crops;
  for (size_t i = 0; i < count; ++i) {
    const Wav wav = Wav::open(pieces[i * pieces.size() / count].mix);
    crops.push_back(wav.read(std::max<int64_t>(0, (wav.samples() - samples) / 2), samples));
  }
  return at::stack(crops);
}

}  // namespace

LatentSpace::LatentSpace(const VaeConfig& config, Scales scales, Timbre timbre)
    : config_(config),
      wave_filters_(lapped_filters(config.downsampling_ratios, LatentParts::of(config).waves)),
      scales_(std::move(scales)),
      log_mel_(config, at::kCPU),
      timbre_(std::move(timbre)),
      pitch_classes_(config, at::kCPU) {}

LatentSpace LatentSpace::measure(const VaeConfig& config, const std::vector<Piece>& pieces) {
  const LatentParts parts = LatentParts::of(config);
  const at::Tensor audio = crops(pieces, kMeasuredFrames * config.samples_per_frame());
  std::vector<at::Tensor> waves, bands, spectra;
  const std::vector<int64_t> strides = exact_strides(config);
  const at::Tensor wave_filters = lapped_filters(config.downsampling_ratios, parts.waves);
  const at::Tensor band_filters = lapped_filters(strides, exact_bands(config));
  const LogMel log_mel(config, at::kCPU);
  for (const at::Tensor& crop : audio.split(1)) {
    waves.push_back(lapped_transform(crop, wave_filters, config.downsampling_ratios));
    bands.push_back(lapped_transform(crop, band_filters, strides));
    spectra.push_back(log_mel(crop.mean(1))[0].t());
  }
  const auto deviations = [](const std::vector<at::Tensor>& signals) {
    return at::cat(signals).transpose(0, 1).flatten(1).std(1);
  };
  return {config,
          {deviations(waves) + kSmallestWave, deviations(bands) + kSmallestBand},
          Timbre::learn(at::cat(spectra), parts.timbre)};
}

LatentSpace LatentSpace::load(const VaeConfig& config, const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const LatentParts parts = LatentParts::of(config);
  const auto fits = [&](const char* name, std::vector<int64_t> shape) { return file.shape(name) == shape; };
  if (!fits("wave_deviations", {parts.waves}) || !fits("band_deviations", {exact_bands(config)}) ||
      !fits("timbre.mean", {LogMel::kRows}) || !fits("timbre.components", {parts.timbre, LogMel::kRows})) {
    fail(ErrorCode::kBadCheckpoint, path + ": measured for another autoencoder; delete it and the latents");
  }
  return {config,
          {file.tensor("wave_deviations").clone(), file.tensor("band_deviations").clone()},
          Timbre(file.tensor("timbre.mean").clone(), file.tensor("timbre.components").clone())};
}

void LatentSpace::save(const std::string& path) const {
  save_safetensors(path, {{"wave_deviations", scales_.waves},
                          {"band_deviations", scales_.bands},
                          {"timbre.mean", timbre_.mean()},
                          {"timbre.components", timbre_.components().contiguous()}});
}

at::Tensor LatentSpace::operator()(const at::Tensor& audio) const {
  const LatentParts parts = LatentParts::of(config_);
  const at::Tensor middle = audio.mean(1);
  const at::Tensor waves =
      lapped_transform(audio, wave_filters_, config_.downsampling_ratios) / scales_.waves.view({-1, 1});
  const at::Tensor beats = at::zeros({audio.size(0), parts.beats, waves.size(2)});
  const at::Tensor pitches = pitch_classes_(middle).narrow(1, 0, parts.pitches);
  return at::cat({waves, beats, timbre_(log_mel_(middle)), pitches}, 1);
}

}  // namespace carillon::pretraining
