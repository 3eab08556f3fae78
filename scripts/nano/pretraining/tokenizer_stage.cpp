#include "pretraining/tokenizer_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/dit/audio_tokenizer.h"
#include "pretraining/latent_parts.h"

namespace carillon::pretraining {
namespace {

constexpr double kFramesPerSecond = 25;
constexpr int64_t kSurroundings = 3;  // frames
constexpr double kQuietest = 0.1;     // latents have deviation 1
constexpr double kDeviation = 0.7, kSpreadWeight = 0.1;

/// What hints are to say of latents [N, T, C]: the structure, and of every other channel the log amplitude around every
/// frame. Those channels are coefficients of a cosine transform, whose signs turn with the phase; a code of 200 ms that
/// has to guess them says 0.
at::Tensor amplitudes(const at::Tensor& latents) {
  const LatentParts parts = LatentParts::of(latents.size(2));
  const at::Tensor energy = at::avg_pool1d(latents.narrow(2, 0, parts.waves).square().transpose(1, 2), kSurroundings, 1,
                                           kSurroundings / 2, /*ceil_mode=*/false, /*count_include_pad=*/false);
  return at::cat({(energy.transpose(1, 2).sqrt() + kQuietest).log(),
                  latents.narrow(2, parts.waves, parts.beats + parts.structure())},
                 2);
}

/// How far the quantiser's dimensions are from mean 0 and deviation kDeviation. Those that leave the levels' range get
/// no gradient back from there, and their codes are lost.
at::Tensor spread_error(const at::Tensor& before_rounding) {
  const at::Tensor by_dimension = before_rounding.flatten(0, -2);
  return by_dimension.mean(0).square().mean() + (by_dimension.std(0) - kDeviation).square().mean();
}

}  // namespace

TokenizerStage::TokenizerStage(const DitConfig& config, const Pieces& pieces, const std::string& latents, int64_t batch,
                               double crop_seconds, at::Device device)
    : config_(config),
      pieces_(pieces),
      train_(latents, pieces.train),
      held_out_(latents, pieces.held_out),
      batch_(batch),
      crop_frames_(std::max<int64_t>(1, std::llround(crop_seconds * kFramesPerSecond / config.pool_window_size)) *
                   config.pool_window_size),
      device_(device) {}

Loss TokenizerStage::loss(const Weights& weights, Draw& draw) const {
  std::vector<at::Tensor> crops;
  for (int64_t item = 0; item < batch_; ++item) {
    const Piece& piece = pieces_.train[static_cast<size_t>(draw.below(static_cast<int64_t>(pieces_.train.size())))];
    const at::Tensor latents = train_.of(piece, kMix);
    const int64_t frames = std::min(crop_frames_, latents.size(0));
    const at::Tensor crop = latents.narrow(0, draw.below(latents.size(0) - frames + 1), frames);
    crops.push_back(at::cat({crop, train_.silence()[0].narrow(0, 0, crop_frames_ - frames)}));
  }
  const at::Tensor latents = at::stack(crops).to(device_);
  const AudioTokenizer tokenizer = AudioTokenizer::load(weights.sub("tokenizer"), config_);
  const AudioDetokenizer detokenizer = AudioDetokenizer::load(weights.sub("detokenizer"), config_);
  const auto tokens = tokenizer.tokenize(latents, train_.silence().to(device_));
  const at::Tensor error = at::mse_loss(detokenizer.hints(tokens.quantized), amplitudes(latents));
  const at::Tensor spread = spread_error(tokens.before_rounding);
  return {error + kSpreadWeight * spread, {{"error", error}, {"spread", spread}}};
}

Figures TokenizerStage::measure(const Weights& weights) const {
  const AudioTokenizer tokenizer = AudioTokenizer::load(weights.sub("tokenizer"), config_);
  const AudioDetokenizer detokenizer = AudioDetokenizer::load(weights.sub("detokenizer"), config_);
  const at::Tensor silence = held_out_.silence().to(device_);
  std::vector<at::Tensor> codes, errors, values;
  for (const Piece& piece : pieces_.held_out) {
    const at::Tensor latents = held_out_.of(piece, kMix).unsqueeze(0).to(device_);
    const auto tokens = tokenizer.tokenize(latents, silence);
    const at::Tensor wanted = amplitudes(latents);
    errors.push_back((detokenizer.hints(tokens.quantized).narrow(1, 0, latents.size(1)) - wanted).flatten());
    values.push_back(wanted.flatten());
    codes.push_back(tokens.indices.flatten());
  }
  const at::Tensor distinct = std::get<0>(at::_unique(at::cat(codes)));
  return {{"error", at::cat(errors).square().mean().item<double>()},
          {"variance", at::cat(values).var().item<double>()},
          {"codes", static_cast<double>(distinct.numel())}};
}

}  // namespace carillon::pretraining
