#include "core/tasks/loudness.h"

#include <ATen/ATen.h>

#include <cmath>

#include "test/differences.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr int64_t kRate = 48000;

/// A tone of 1 kHz in both channels, with its peak at `decibels`.
at::Tensor tone(double decibels, double seconds) {
  const at::Tensor times = at::arange(static_cast<int64_t>(seconds * kRate), at::kDouble) / static_cast<double>(kRate);
  const at::Tensor wave = at::sin(times * (2.0 * M_PI * 1000.0)) * std::pow(10.0, decibels / 20.0);
  return wave.to(at::kFloat).expand({2, -1});
}

}  // namespace

// Levels of EBU Tech 3341, "Loudness metering", signals 1 to 3.
TEST("loudness: measures tones as the standard requires, and leaves out quiet parts") {
  EXPECT_NEAR(*loudness_of(tone(-23.0, 20)), -23.0, 0.1);
  EXPECT_NEAR(*loudness_of(tone(-33.0, 20)), -33.0, 0.1);
  EXPECT_NEAR(*loudness_of(at::cat({tone(-36.0, 10), tone(-23.0, 60), tone(-36.0, 10)}, 1)), -23.0, 0.1);
  EXPECT_NEAR(*loudness_of(at::cat({tone(-23.0, 10), at::zeros({2, 20 * kRate})}, 1)), -23.0, 0.1);
}

TEST("loudness: measures audio shorter than a block, and none in silence or faint noise") {
  EXPECT_NEAR(*loudness_of(tone(-23.0, 0.05)), -23.0, 1.0);
  EXPECT(!loudness_of(at::zeros({2, kRate})));
  EXPECT(!loudness_of(random_tensor({2, kRate}, 1, 1e-4)));
  EXPECT(!loudness_of(at::zeros({2, 0})));
}

TEST("loudness: audio outside the range of music is brought to its middle, other audio is unchanged") {
  const LoudnessRange music{.low = -20.0, .high = -8.0};
  for (const double decibels : {-8.5, -19.5}) {
    const at::Tensor audio = tone(decibels, 1);
    EXPECT_EQ(level_to_music(audio, music), 1.0);
    EXPECT(at_music_level(audio, 1.0).is_same(audio));
  }
  for (const double decibels : {-3.0, -26.0, -50.0}) {
    const at::Tensor audio = tone(decibels, 1);
    EXPECT_NEAR(*loudness_of(at_music_level(audio, level_to_music(audio, music))), -14.0, 0.1);
  }
  EXPECT_EQ(at_music_level(tone(0.0, 1), 0.5).max().item<float>(), 1.0f);
}

TEST("loudness: is measured up to ten seconds beside a window, and not in it") {
  const at::Tensor quiet = tone(-40.0, 5), loud = tone(-10.0, 5), medium = tone(-23.0, 10);
  const at::Tensor song = at::cat({quiet, medium, loud, medium, quiet}, 1);
  EXPECT_NEAR(*loudness_beside(song, 15 * kRate, 20 * kRate), -23.0, 0.1);
  EXPECT_NEAR(*loudness_beside(song, 0, 20 * kRate), -23.0, 0.1);
  EXPECT_NEAR(*loudness_beside(song, 15 * kRate, song.size(1) + kRate), -23.0, 0.1);
  EXPECT(!loudness_beside(song, 0, song.size(1)));
}

TEST("loudness: suits a new part near its neighbours, and between them and the original") {
  const auto expect = [](std::optional<double> neighbours, std::optional<double> original, double low, double high) {
    const std::optional<LoudnessRange> range = suitable_loudness(neighbours, original);
    EXPECT_NEAR(range->low, low, 1e-9);
    EXPECT_NEAR(range->high, high, 1e-9);
  };
  expect(-20.0, std::nullopt, -21.0, -19.0);
  expect(-20.0, -20.5, -21.0, -19.0);
  expect(-20.0, -30.0, -30.0, -19.0);
  expect(-20.0, -10.0, -21.0, -10.0);
  expect(std::nullopt, -20.0, -21.0, -19.0);
  EXPECT(!suitable_loudness(std::nullopt, std::nullopt));
}
