#include "pretraining/beats.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

namespace carillon::pretraining {
namespace {

constexpr double kFramesPerSecond = 25;
constexpr double kLength = 2.5;  // of a hand: the other channels have deviations of 1 to 2.5

}  // namespace

at::Tensor beats(const Facts& facts, int64_t first_frame, int64_t frames, int64_t channels) {
  const at::Tensor seconds = (at::arange(first_frame, first_frame + frames, at::kDouble) + 0.5) / kFramesPerSecond;
  const at::Tensor beat = seconds * (facts.bpm / 60 * 2 * std::numbers::pi);
  const at::Tensor bar = beat / static_cast<double>(beats_per_bar(facts));
  const at::Tensor hands = at::stack({beat.cos(), beat.sin(), bar.cos(), bar.sin()}, 1);
  return (kLength * hands).to(at::kFloat).narrow(1, 0, channels);
}

double tempo_of(const at::Tensor& beats) {
  const at::Tensor hand = at::complex(beats.select(1, 0).to(at::kDouble), beats.select(1, 1).to(at::kDouble));
  const int64_t steps = hand.size(0) - 1;
  const at::Tensor advance = at::angle((hand.narrow(0, 1, steps) * hand.narrow(0, 0, steps).conj()).sum());
  return advance.item<double>() / (2 * std::numbers::pi) * kFramesPerSecond * 60;
}

}  // namespace carillon::pretraining
