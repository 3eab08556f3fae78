#include "core/tasks/postprocess.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "test/test.h"

using namespace carillon;

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
