#include <ATen/ATen.h>

#include <numbers>

#include "core/vae/vae.h"

namespace carillon {

namespace {

constexpr double kLowestHertz = 41.20344461410875;  // E1, if A4 is 440 Hz
constexpr double kPhaseStep = 0.6180339887498949;  // phase offset between semitones, in turns; no two are in phase

at::Tensor column(const std::vector<double>& values) { return at::tensor(values, at::kFloat).unsqueeze(1); }

}  // namespace

at::Tensor semitone_hertz(int64_t count) { return kLowestHertz * at::exp2(at::arange(count, at::kDouble) / 12); }

at::Tensor play_oscillators(const at::Tensor& latents, const VaeConfig& config) {
  const auto count = static_cast<int64_t>(config.oscillators.mean.size());
  const int64_t hop = config.samples_per_frame(), frames = latents.size(2);
  const at::Tensor own = latents.narrow(1, 0, count).to(at::kCPU, at::kFloat).clamp_max(config.oscillators.loudest);
  at::Tensor amplitudes = (column(config.oscillators.mean) + column(config.oscillators.deviation) * own).exp();
  if (const double subtracted = config.oscillators.subtracted; subtracted > 0) {
    amplitudes = (amplitudes.square() - subtracted * subtracted).clamp_min(0).sqrt();
  }

  // Amplitudes change linearly from the middle of one frame to the middle of the next. Over this span, the wave of a
  // semitone is a weighted sum of a cosine and a sine. One product with a table of cosines and sines computes all
  // waves.
  const at::Tensor number = at::arange(count, at::kDouble).unsqueeze(1);
  const auto rate = static_cast<double>(config.sampling_rate);
  const at::Tensor turns = semitone_hertz(count).unsqueeze(1) / rate;  // turns per sample
  const at::Tensor begins = (at::arange(frames + 1, at::kDouble) - 0.5) * static_cast<double>(hop);
  const at::Tensor phase = (turns * begins + kPhaseStep * number).frac() * (2 * std::numbers::pi);
  const at::Tensor within = turns * at::arange(hop, at::kDouble) * (2 * std::numbers::pi);
  const at::Tensor table = at::cat({within.cos(), within.sin()}).to(at::kFloat);  // [2 count, hop]
  const at::Tensor cosine = phase.cos().to(at::kFloat), sine = phase.sin().to(at::kFloat);
  const auto spread = [&](const at::Tensor& values) {  // [B, count, frames + 1] -> [B, frames + 1, hop]
    return at::matmul(at::cat({values * cosine, values * -sine}, 1).transpose(1, 2), table);
  };
  const at::Tensor edges = at::cat({amplitudes.narrow(2, 0, 1), amplitudes, amplitudes.narrow(2, frames - 1, 1)}, 2);
  const at::Tensor begin = edges.narrow(2, 0, frames + 1), change = edges.narrow(2, 1, frames + 1) - begin;
  const at::Tensor rise = at::arange(hop, at::kFloat) / static_cast<double>(hop);
  const at::Tensor stretches = spread(begin) + rise * spread(change);
  return stretches.flatten(1).narrow(1, hop / 2, frames * hop).unsqueeze(1);
}

}  // namespace carillon
