#include "core/tasks/postprocess.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/tasks/loudness.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr LoudnessRange kUsual{.low = -22.0, .high = -18.0};

/// Noise of `decibels` LUFS.
at::Tensor noise(double decibels, int64_t seconds = 2) {
  const at::Tensor audio = random_tensor({2, seconds * kSampleRate}, 5, 0.1);
  return audio * amplitude_ratio(decibels - *loudness_of(audio));
}

/// Loudness of the middle second of noise of three seconds, when only that second has to be -22 to -18 LUFS.
double fitted(double decibels) {
  const at::Tensor song = fit_part(noise(decibels, 3), kSampleRate, 2 * kSampleRate, 1.0, kUsual);
  return *loudness_of(song.slice(1, kSampleRate, 2 * kSampleRate));
}

}  // namespace

TEST("postprocess: normalises loud and quiet audio to -1 dB in place") {
  EXPECT_NEAR(kPeakAmplitude, std::pow(10.0, -1.0 / 20.0), 1e-12);
  for (const float peak : {3.0f, 0.01f}) {
    at::Tensor audio = at::tensor({0.5f * peak, -peak, 0.0f, 0.25f * peak}).reshape({2, 2});
    const void* buffer = audio.const_data_ptr();
    normalize_peak(audio);
    EXPECT_NEAR(audio.abs().max().item<double>(), 0.891251, 1e-6);
    EXPECT_NEAR(audio[0][0].item<double>(), 0.5 * 0.891251, 1e-6);
    EXPECT_EQ(audio.const_data_ptr(), buffer);
  }
}

TEST("postprocess: leaves silence unchanged and rejects values that are not finite") {
  at::Tensor silence = at::full({2, 3}, 1e-7f);
  normalize_peak(silence);
  EXPECT_NEAR(silence.max().item<double>(), 1e-7, 1e-12);
  at::Tensor broken = at::tensor({0.1f, std::numeric_limits<float>::quiet_NaN()}).reshape({2, 1});
  EXPECT_THROWS(normalize_peak(broken), "not finite");
}

TEST("postprocess: the limiter bends high samples so that none exceeds full scale, and nothing else") {
  const at::Tensor low = at::tensor({0.5f, -0.75f, 0.9f, -1.0f}).reshape({2, 2});
  EXPECT(limit_peaks(low).is_same(low));
  const at::Tensor high = at::tensor({0.5f, -0.75f, 0.9f, 1.1f, -1.1f, 40.0f}).reshape({2, 3});
  const at::Tensor limited = limit_peaks(high).flatten();
  EXPECT(limited.slice(0, 0, 2).equal(at::tensor({0.5f, -0.75f})));
  EXPECT(limited[2].item<float>() < 0.9f && limited[2].item<float>() < limited[3].item<float>());
  EXPECT_EQ(limited[4].item<float>(), -limited[3].item<float>());
  EXPECT_EQ(limited.max().item<float>(), 1.0f);
  EXPECT_THROWS(limit_peaks(at::full({2, 3}, std::numeric_limits<float>::quiet_NaN())), "not finite");
}

TEST("postprocess: fits the loudness of a part by at most 12 dB, and leaves a suitable one as it is") {
  EXPECT_NEAR(fitted(-28.0), -22.0, 0.2);
  EXPECT_NEAR(fitted(-10.0), -18.0, 0.2);
  EXPECT_NEAR(fitted(-40.0), -28.0, 0.2);
  EXPECT_NEAR(fitted(-3.0), -15.0, 0.5);
  const at::Tensor suitable = noise(-20.0);
  EXPECT(fit_part(suitable, 0, kSampleRate, 0.5, kUsual).equal(0.5 * suitable));
}

TEST("postprocess: gives no gain to a silent part, nor to one without a suitable loudness") {
  at::Tensor song = noise(-30.0);
  EXPECT(fit_part(song, 0, kSampleRate, 0.5, std::nullopt).equal(0.5 * song));
  song.slice(1, 0, kSampleRate).fill_(1e-5f);
  EXPECT(fit_part(song, 0, kSampleRate, 0.5, kUsual).equal(0.5 * song));
}

TEST("postprocess: a part that belongs to a loud song gets its loudness without a sample above full scale") {
  const at::Tensor part = noise(-20.0);  // after `level`, -6 LUFS with peaks of about 2
  const double level = amplitude_ratio(14.0);
  const at::Tensor loud = fit_part(part, 0, part.size(1), level, LoudnessRange{.low = -21.0, .high = -19.0});
  EXPECT(loud.abs().max().item<float>() <= 1.0f);
  EXPECT_NEAR(*loudness_of(loud), -6.0, 1.1);
  // A song of unknown level is normalised later, so its peaks stay.
  const at::Tensor raw = fit_part(part * level, 0, part.size(1), std::nullopt, std::nullopt);
  EXPECT(raw.equal(part * level));
}
