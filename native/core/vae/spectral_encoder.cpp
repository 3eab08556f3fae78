#include "core/vae/spectral_encoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/vae/vae.h"

namespace carillon {

namespace {

constexpr double kCycles = 17, kLongestSeconds = 0.25;  // length of a semitone's window: cycles, but at most this long
constexpr int kUpdates = 30;

constexpr int64_t kMelBands = 80, kMelsPerFrame = 4, kMelWindow = 2048;
constexpr double kLowestMelHertz = 250, kHighestMelHertz = 16000, kQuietestMel = 1e-8;

constexpr int64_t kPitchWindow = 8192;
constexpr double kLowestPitchHertz = 100, kHighestPitchHertz = 2000, kQuietestPitch = 1e-7;
constexpr double kPitchCentre = -4.2, kPitchScale = 2.2, kLoudnessKept = 0.2;

constexpr int64_t kFramesAtOnce = 256;  // limits memory: overlapping windows have many times the samples of the audio

at::Tensor bin_hertz(int64_t window, int64_t rate) {
  return at::arange(window / 2 + 1, at::kDouble) * (static_cast<double>(rate) / static_cast<double>(window));
}

/// Triangular filters [bins, bands] with corners evenly spaced in mel. The weights of each filter sum to 1.
at::Tensor mel_filters(int64_t rate) {
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const at::Tensor mels = at::linspace(to_mel(kLowestMelHertz), to_mel(kHighestMelHertz), kMelBands + 2, at::kDouble);
  const at::Tensor corners = 700 * (at::pow(10, mels / 2595) - 1);
  const auto corner = [&](int64_t first) { return corners.narrow(0, first, kMelBands); };
  const at::Tensor hertz = bin_hertz(kMelWindow, rate).unsqueeze(1);
  const at::Tensor rise = (hertz - corner(0)) / (corner(1) - corner(0));
  const at::Tensor fall = (corner(2) - hertz) / (corner(2) - corner(1));
  const at::Tensor filters = at::minimum(rise, fall).clamp_min(0);
  return (filters / filters.sum(0, true)).to(at::kFloat);
}

/// One-hot pitch class of each bin: [bins, classes]. Class 0 is A; bins outside the pitch range are zero.
at::Tensor pitch_filters(int64_t rate) {
  const at::Tensor hertz = bin_hertz(kPitchWindow, rate);
  const at::Tensor in_range = hertz.ge(kLowestPitchHertz).logical_and(hertz.lt(kHighestPitchHertz));
  const at::Tensor semitone = (12 * at::log2(hertz.clamp_min(1) / 440)).round().remainder(12);
  return (semitone.unsqueeze(1) == at::arange(12, at::kDouble)).logical_and(in_range.unsqueeze(1)).to(at::kFloat);
}

/// Spectral energies [count, bins] of `count` windows. Window i has the same centre as the `hop` samples that start at
/// begin + i * hop. The energy of a sine is about its squared amplitude.
at::Tensor energies_around(const at::Tensor& signal, int64_t begin, int64_t count, int64_t hop, int64_t window) {
  const at::Tensor stretch = signal.narrow(0, begin - (window - hop) / 2, (count - 1) * hop + window);
  const at::Tensor bins = at::fft_rfft(stretch.unfold(0, window, hop) * at::hann_window(window));
  return bins.abs().square() * std::pow(4.0 / static_cast<double>(window), 2);
}

}  // namespace

SpectralEncoder SpectralEncoder::load(const Weights& weights, const VaeConfig& config) {
  SpectralEncoder out;
  out.config_ = config;
  out.hop_ = config.samples_per_frame();
  const auto get = [&](const char* name, at::IntArrayRef shape) { return weights.get(name, shape, at::kFloat).cpu(); };
  constexpr int64_t kRows = kMelBands * kMelsPerFrame;
  out.timbre_mean_ = get("timbre_mean", {kRows});
  out.timbre_components_ = get("timbre_components", {config.spectral_encoder->timbre_channels, kRows});
  out.low_mean_ = at::tensor(config.oscillators.mean, at::kFloat);
  out.low_deviation_ = at::tensor(config.oscillators.deviation, at::kFloat);
  out.mel_filters_ = mel_filters(config.sampling_rate);
  out.pitch_filters_ = pitch_filters(config.sampling_rate);

  const auto rate = static_cast<double>(config.sampling_rate);
  const at::Tensor hertz = semitone_hertz(static_cast<int64_t>(config.oscillators.mean.size()));
  out.reach_ = static_cast<int64_t>(kLongestSeconds * rate) / 2;
  out.margin_ = std::max({out.reach_, kMelWindow / 2, kPitchWindow / 2}) + 1;
  const at::Tensor time = at::arange(-out.reach_, out.reach_ + 1, at::kDouble).unsqueeze(1) / rate;
  const at::Tensor turned = 2 * std::numbers::pi * hertz * time;  // [2 reach + 1, semitones]
  at::Tensor windows = at::zeros_like(turned);
  for (int64_t i = 0; i < hertz.size(0); ++i) {
    const double seconds = std::min(kCycles / hertz[i].item<double>(), kLongestSeconds);
    const int64_t half = std::llrint(seconds * rate) / 2, length = 2 * half + 1;
    const at::Tensor hann = at::hann_window(length + 2, false, at::kDouble).narrow(0, 1, length);
    windows.select(1, i).narrow(0, out.reach_ - half, length).copy_(2 * hann / hann.sum());
  }
  const at::Tensor cosine = turned.cos(), sine = turned.sin();
  const at::Tensor windowed_cosine = windows * cosine, windowed_sine = windows * sine;
  const at::Tensor real = windowed_cosine.t().matmul(cosine) + windowed_sine.t().matmul(sine);
  const at::Tensor imaginary = windowed_sine.t().matmul(cosine) - windowed_cosine.t().matmul(sine);
  out.response_ = ((real.square() + imaginary.square()) / 4).to(at::kFloat);
  out.cosine_ = windowed_cosine.to(at::kFloat);
  out.sine_ = windowed_sine.to(at::kFloat);
  return out;
}

at::Tensor SpectralEncoder::encode(const at::Tensor& audio, const Control& control) const {
  const int64_t items = audio.size(0), frames = audio.size(2) / hop_;
  const at::Tensor latents = at::empty({items, frames, config_.decoder_input_channels});
  for (int64_t item = 0; item < items; ++item) {
    const at::Tensor middle = audio[item].narrow(1, 0, frames * hop_).to(at::kCPU, at::kFloat).mean(0);
    const at::Tensor signal = at::constant_pad_nd(middle, {margin_, margin_});
    for (int64_t first = 0; first < frames; first += kFramesAtOnce) {
      control.report(Stage::kConditions, item * frames + first, items * frames);
      const int64_t count = std::min(kFramesAtOnce, frames - first);
      latents[item].narrow(0, first, count).copy_(encode_frames(signal, first, count));
    }
  }
  control.report(Stage::kConditions, items * frames, items * frames);
  return latents.transpose(1, 2).contiguous();
}

at::Tensor SpectralEncoder::encode_frames(const at::Tensor& signal, int64_t first, int64_t count) const {
  const int64_t begin = margin_ + first * hop_ + hop_ / 2 - reach_, width = 2 * reach_ + 1;
  const at::Tensor windows = signal.narrow(0, begin, (count - 1) * hop_ + width).unfold(0, width, hop_);
  const at::Tensor clock = at::zeros({count, config_.spectral_encoder->clock_channels});
  return at::cat({semitones(windows), clock, timbre(signal, first, count), pitch_classes(signal, first, count)}, 1);
}

/// A window of a quarter of a second also responds to the semitones next to the played one. A multiplicative update
/// (Lee and Seung, 2001) finds the non-negative amplitudes that explain these responses.
at::Tensor SpectralEncoder::semitones(const at::Tensor& windows) const {
  const at::Tensor energy = windows.matmul(cosine_).square() + windows.matmul(sine_).square();  // [frames, semitones]
  const at::Tensor target = energy.matmul(response_);
  const double floor = config_.oscillators.floor * config_.oscillators.floor;
  at::Tensor found = energy + floor;
  for (int i = 0; i < kUpdates; ++i) found = found * target / (found.matmul(response_.t()).matmul(response_) + 1e-12);
  return (0.5 * (found + floor).log() - low_mean_) / low_deviation_;
}

at::Tensor SpectralEncoder::timbre(const at::Tensor& signal, int64_t first, int64_t count) const {
  const int64_t begin = margin_ + first * hop_, hop = hop_ / kMelsPerFrame;
  const at::Tensor energy = energies_around(signal, begin, count * kMelsPerFrame, hop, kMelWindow).matmul(mel_filters_);
  const at::Tensor log = 0.5 * (energy + kQuietestMel).log();
  const at::Tensor rows = log.view({count, kMelsPerFrame, kMelBands}).transpose(1, 2).flatten(1);  // band by band
  return (rows - timbre_mean_).matmul(timbre_components_.t());
}

/// Subtracts most of the loudness, which all classes share, so that harmony remains.
at::Tensor SpectralEncoder::pitch_classes(const at::Tensor& signal, int64_t first, int64_t count) const {
  const int64_t begin = margin_ + first * hop_;
  const at::Tensor energy = energies_around(signal, begin, count, hop_, kPitchWindow).matmul(pitch_filters_);
  const at::Tensor log = 0.5 * (energy + kQuietestPitch).log() - kPitchCentre;
  const at::Tensor classes = kPitchScale * (log - (1 - kLoudnessKept) * log.mean(1, true));
  return classes.narrow(1, 0, config_.spectral_encoder->pitch_classes);
}

}  // namespace carillon
