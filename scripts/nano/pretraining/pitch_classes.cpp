#include "pretraining/pitch_classes.h"

#include <ATen/ATen.h>

#include <cmath>

#include "pretraining/spectral.h"

namespace carillon::pretraining {
namespace {

constexpr int64_t kWindow = 8192;                                // 171 ms: semitones from 100 Hz on
constexpr double kLowest = 100, kHighest = 2000, kTuning = 440;  // Hz
constexpr double kQuietest = 1e-7;                               // energy
constexpr double kCentre = -4.2;                                 // mean over 1400 s of the data set
constexpr double kScale = 2.2, kLoudnessKept = 0.2;

/// -1 outside the range that is listened to.
int64_t pitch_class_of(double hertz) {
  if (hertz < kLowest || hertz >= kHighest) return -1;
  const int64_t semitone = std::lround(static_cast<double>(kPitchClasses) * std::log2(hertz / kTuning));
  return ((semitone % kPitchClasses) + kPitchClasses) % kPitchClasses;
}

}  // namespace

PitchClasses::PitchClasses(const VaeConfig& config, at::Device device)
    : hop_(config.samples_per_frame()), hann_(at::hann_window(kWindow, at::device(device).dtype(at::kFloat))) {
  at::Tensor filters = at::zeros({kPitchClasses, kWindow / 2 + 1});
  for (int64_t bin = 0; bin <= kWindow / 2; ++bin) {
    const double hertz = static_cast<double>(bin * config.sampling_rate) / static_cast<double>(kWindow);
    if (const int64_t row = pitch_class_of(hertz); row >= 0) filters[row][bin] = 1;
  }
  filters_ = filters.to(device);
}

at::Tensor PitchClasses::operator()(const at::Tensor& middle) const {
  const at::Tensor energy = at::matmul(filters_, energies_around(middle, hop_, hann_));
  const at::Tensor pitch = 0.5 * (energy + kQuietest).log() - kCentre;
  return kScale * (pitch - (1 - kLoudnessKept) * pitch.mean(1, /*keepdim=*/true));
}

}  // namespace carillon::pretraining
