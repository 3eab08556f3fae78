#include "pretraining/decoder_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "pretraining/latent_parts.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {
namespace {

// Deviation of the noise on waves, of about unit scale, and on the structure: up to what a DiT's errors are there. The
// decoder then asks the structure, which a DiT draws better, what of the waves to believe.
constexpr double kMostBlur = 0.6, kStructureBlur = 0.3;
constexpr double kStemShare = 0.35;  // of crops of pieces that have stems
constexpr int64_t kHeldOutCrops = 24;

}  // namespace

DecoderStage::DecoderStage(const VaeConfig& config, const Pieces& pieces, const std::string& latents, int64_t batch,
                           double crop_seconds, at::Device device)
    : config_(config),
      pieces_(pieces),
      train_(latents, pieces.train),
      held_out_(latents, pieces.held_out),
      batch_(batch),
      crop_frames_(std::max<int64_t>(2, std::llround(crop_seconds * static_cast<double>(config.sampling_rate) /
                                                     static_cast<double>(config.samples_per_frame())))),
      device_(device),
      error_(config.sampling_rate, device),
      discriminator_(device) {}

DecoderStage::Crop DecoderStage::crop(const Latents& latents, const Piece& piece, const std::string& track,
                                      int64_t first_frame) const {
  const at::Tensor all = latents.of(piece, track);
  const int64_t first = std::clamp<int64_t>(first_frame, 0, all.size(0) - crop_frames_);
  const int64_t hop = config_.samples_per_frame();
  const Wav wav = Wav::open(track == kMix ? piece.mix : piece.stems.at(track));
  return {all.narrow(0, first, crop_frames_).t().contiguous(), wav.read(first * hop, crop_frames_ * hop)};
}

Loss DecoderStage::loss(const Weights& weights, Draw& draw) const {
  std::vector<at::Tensor> latents, audio;
  for (int64_t item = 0; item < batch_; ++item) {
    const Piece& piece = pieces_.train[static_cast<size_t>(draw.below(std::ssize(pieces_.train)))];
    std::string track = kMix;
    if (!piece.stems.empty() && draw.uniform() < kStemShare) {
      track = std::next(piece.stems.begin(), draw.below(std::ssize(piece.stems)))->first;
    }
    const Crop drawn = crop(train_, piece, track, draw.below(train_.frames(piece)));
    latents.push_back(drawn.latents);
    audio.push_back(drawn.audio);
  }
  const at::Tensor sharp = at::stack(latents);
  std::vector<float> deviations;
  for (int64_t item = 0; item < batch_; ++item) deviations.push_back(static_cast<float>(kMostBlur * draw.uniform()));
  const LatentParts parts = LatentParts::of(config_);
  const at::Tensor noise = at::tensor(deviations).view({-1, 1, 1}) * draw.normal(sharp.sizes());
  noise.narrow(1, parts.first_of_structure(), parts.structure()).mul_(kStructureBlur / kMostBlur);
  const at::Tensor blurred = sharp + noise;
  blurred.narrow(1, parts.waves, parts.beats).zero_();  // so that nothing ever reads the clock
  const at::Tensor made = decode(weights, config_, blurred.to(device_)), real = at::stack(audio).to(device_);
  Loss loss = error_.loss(made, real), judged = discriminator_.loss(weights.sub("discriminator"), made, real);
  loss.total = loss.total + judged.total;
  loss.parts.merge(judged.parts);
  return loss;
}

Figures DecoderStage::measure(const Weights& weights) const {
  std::vector<at::Tensor> latents, audio;
  for (const Piece& piece : pieces_.held_out) {
    if (std::ssize(audio) == kHeldOutCrops) break;
    const Crop middle = crop(held_out_, piece, kMix, (held_out_.frames(piece) - crop_frames_) / 2);
    latents.push_back(middle.latents);
    audio.push_back(middle.audio);
  }
  return error_.measure(at::stack(audio), [&](int64_t index) {
    return decode(weights, config_, latents[static_cast<size_t>(index)].unsqueeze(0).to(device_));
  });
}

}  // namespace carillon::pretraining
