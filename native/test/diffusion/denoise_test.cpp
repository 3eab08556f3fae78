// Tests that the options of the denoising loop have an effect on a tiny model. Parity tests check the exact numbers.
#include <ATen/ATen.h>

#include <atomic>
#include <limits>

#include "core/diffusion/denoise.h"
#include "core/runtime/error.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr int64_t kFrames = 16;

DenoiseJob job_for(const AceStep& model, int64_t batch, uint64_t seed = 1) {
  return {.conditions = {random_tensor({1, 6, kTinyEncoder}, seed).expand({batch, -1, -1}),
                         random_tensor({1, kFrames, 2 * kTinyLatent}, seed + 1).expand({batch, -1, -1})},
          .null_condition = model.null_condition,
          .denoise = {.inference_steps = 5},
          .guidance = {},
          .conditions_after_cover = {},
          .cover_source = {},
          .repaint = {}};
}

at::Tensor run(const AceStep& model, const DenoiseJob& job, const std::vector<uint64_t>& seeds) {
  NoiseStreams noise(seeds);
  return denoise(model.dit, job, noise, Control());
}

}  // namespace

TEST("denoise: an item does not depend on its batch, with and without guidance, for every solver") {
  const AceStep model = tiny_ace_step({});
  for (const double scale : {1.0, 5.0}) {
    for (const auto variant : {GuidanceVariant::kApg, GuidanceVariant::kCfg, GuidanceVariant::kAdg,
                               GuidanceVariant::kAdgNormed, GuidanceVariant::kAdgUnlimited}) {
      for (const auto method :
           {InferMethod::kOde, InferMethod::kSde, InferMethod::kHeun, InferMethod::kDpm3m, InferMethod::kStork4}) {
        DenoiseJob both = job_for(model, 2), alone = job_for(model, 1);
        both.guidance = alone.guidance = {scale, variant, 0.0, 1.0};
        both.denoise.velocity_norm_threshold = alone.denoise.velocity_norm_threshold = 1.0;
        both.denoise.velocity_ema_factor = alone.denoise.velocity_ema_factor = 0.1;
        both.denoise.infer_method = alone.denoise.infer_method = method;
        const at::Tensor pair = run(model, both, {3, 4});
        EXPECT(largest_difference(pair.narrow(0, 1, 1), run(model, alone, {4})) < 2e-4);
        EXPECT(largest_difference(pair[0], pair[1]) > 1e-2);
      }
    }
  }
}

TEST("denoise: each solver and the wavelet correction change the song, also on turbo models") {
  for (const bool is_turbo : {false, true}) {
    const AceStep model = tiny_ace_step({.is_turbo = is_turbo});
    DenoiseJob job = job_for(model, 1);
    const at::Tensor plain = run(model, job, {1});
    for (const auto method : {InferMethod::kSde, InferMethod::kHeun, InferMethod::kDpm3m, InferMethod::kStork4}) {
      job.denoise.infer_method = method;
      EXPECT(largest_difference(run(model, job, {1}), plain) > 1e-4);
    }
    job.denoise.infer_method = InferMethod::kOde;
    job.denoise.corrects_wavelets = true;
    for (const auto band : {WaveletBand::kLow, WaveletBand::kHigh, WaveletBand::kDouble, WaveletBand::kPixel}) {
      job.denoise.wavelets = {band, 0.2, 0.2};
      EXPECT(largest_difference(run(model, job, {1}), plain) > 1e-4);
    }
  }
}

TEST("denoise: limiting and smoothing velocities change the song, with every solver and on turbo models") {
  for (const bool is_turbo : {false, true}) {
    const AceStep model = tiny_ace_step({.is_turbo = is_turbo});
    for (const auto method :
         {InferMethod::kOde, InferMethod::kSde, InferMethod::kHeun, InferMethod::kDpm3m, InferMethod::kStork4}) {
      DenoiseJob plain = job_for(model, 1);
      plain.denoise.infer_method = method;
      DenoiseJob limited = plain, smoothed = plain;
      limited.denoise.velocity_norm_threshold = 0.1;
      smoothed.denoise.velocity_ema_factor = 0.5;
      const at::Tensor song = run(model, plain, {1});
      EXPECT(largest_difference(run(model, limited, {1}), song) > 1e-3);
      EXPECT(largest_difference(run(model, smoothed, {1}), song) > 1e-4);
    }
  }
}

TEST("denoise: each variant of guidance and each option of projected guidance changes the song") {
  const AceStep model = tiny_ace_step({});
  DenoiseJob job = job_for(model, 1);
  job.guidance = {7.0, GuidanceVariant::kApg, 0.0, 1.0};
  std::vector<at::Tensor> songs = {run(model, job, {1})};
  for (const auto& projection :
       {AdaptiveProjectedGuidance::Options{.eta = 1}, AdaptiveProjectedGuidance::Options{.momentum = 0.5},
        AdaptiveProjectedGuidance::Options{.norm_threshold = 0.1}}) {
    job.guidance.projection = projection;
    songs.push_back(run(model, job, {1}));
  }
  for (const auto variant : {GuidanceVariant::kCfg, GuidanceVariant::kAdg, GuidanceVariant::kAdgNormed,
                             GuidanceVariant::kAdgUnlimited}) {
    job.guidance.variant = variant;
    songs.push_back(run(model, job, {1}));
  }
  for (size_t a = 0; a < songs.size(); ++a) {
    for (size_t b = a + 1; b < songs.size(); ++b) EXPECT(largest_difference(songs[a], songs[b]) > 1e-4);
  }
}

TEST("denoise: stork4 accepts repeated times after snapping to turbo times") {
  const AceStep model = tiny_ace_step({.is_turbo = true});
  DenoiseJob job = job_for(model, 1);
  job.denoise.infer_method = InferMethod::kStork4;
  job.denoise.timesteps = {1.0, 0.999, 0.998, 0.5, 0.499, 0.3};
  EXPECT(run(model, job, {1}).isfinite().all().item<bool>());
}

TEST("denoise: guidance is active inside its interval only, and never on turbo models") {
  const AceStep base = tiny_ace_step({}), turbo = tiny_ace_step({.is_turbo = true});
  DenoiseJob plain = job_for(base, 1), outside = plain, inside = plain;
  outside.guidance = {7.0, GuidanceVariant::kApg, 0.01, 0.02};
  inside.guidance = {7.0, GuidanceVariant::kApg, 0.7, 1.0};
  EXPECT_EQ(largest_difference(run(base, plain, {1}), run(base, outside, {1})), 0.0);
  EXPECT(largest_difference(run(base, plain, {1}), run(base, inside, {1})) > 1e-3);
  EXPECT_EQ(largest_difference(run(turbo, plain, {1}), run(turbo, inside, {1})), 0.0);
}

TEST("denoise: a single step moves along the velocity from noise to data") {
  const AceStep model = tiny_ace_step({});
  DenoiseJob job = job_for(model, 1);
  job.denoise.timesteps = {1.0};
  const at::Tensor noise = NoiseStreams({9}).next(kFrames, kTinyLatent, at::kCPU);
  const at::Tensor velocity =
      model.dit.velocity(noise, model.dit.embed_context(job.conditions.context), model.dit.modulate(at::ones({1})),
                         model.dit.make_cross_cache(job.conditions.encoder_states));
  EXPECT(largest_difference(run(model, job, {9}), noise - velocity) < 1e-5);
}

TEST("denoise: switches conditions at int(steps * cover_strength)") {
  const AceStep model = tiny_ace_step({.is_turbo = true});
  DenoiseJob cover = job_for(model, 1), other = job_for(model, 1, 50);
  cover.conditions_after_cover = other.conditions;
  EXPECT_EQ(largest_difference(run(model, cover, {1}), run(model, job_for(model, 1), {1})), 0.0);
  cover.denoise.cover_strength = 0.0;
  EXPECT_EQ(largest_difference(run(model, cover, {1}), run(model, other, {1})), 0.0);
  cover.denoise.cover_strength = 0.19;  // less than one of 5 steps
  EXPECT_EQ(largest_difference(run(model, cover, {1}), run(model, other, {1})), 0.0);
  cover.denoise.cover_strength = 0.5;
  EXPECT(largest_difference(run(model, cover, {1}), run(model, other, {1})) > 1e-3);
  cover.conditions_after_cover.reset();
  EXPECT_THROWS(run(model, cover, {1}), "conditions for the remaining steps");
}

TEST("denoise: repaint keeps the source outside its window") {
  const AceStep model = tiny_ace_step({});
  DenoiseJob job = job_for(model, 1);
  const at::Tensor clean = random_tensor({1, kFrames, kTinyLatent}, 30);
  at::Tensor mask = at::zeros({1, kFrames}, at::kBool);
  mask.narrow(1, 4, 6).fill_(true);
  job.repaint = Repaint{.mask = mask, .clean = clean, .injection_ratio = 1.0, .crossfade_frames = 0};
  const at::Tensor painted = run(model, job, {1});
  EXPECT_EQ(largest_difference(painted.narrow(1, 0, 4), clean.narrow(1, 0, 4)), 0.0);
  EXPECT_EQ(largest_difference(painted.narrow(1, 10, 6), clean.narrow(1, 10, 6)), 0.0);
  EXPECT(largest_difference(painted.narrow(1, 4, 6), clean.narrow(1, 4, 6)) > 1e-2);
}

TEST("denoise: a soft mask fades from 1 inside the window to 0, and is cut off at the ends of the clip") {
  at::Tensor mask = at::zeros({2, 12}, at::kBool);
  mask[0].narrow(0, 2, 3).fill_(true);
  mask[1].fill_(true);
  const at::Tensor soft = soft_window(mask, 5);
  const at::Tensor expected = at::tensor({2.f, 4.f, 6.f, 6.f, 6.f, 5.f, 4.f, 3.f, 2.f, 1.f, 0.f, 0.f}) / 6.0;
  EXPECT(largest_difference(soft[0], expected) < 1e-6);
  EXPECT(soft[1].equal(at::ones({12})));
}

TEST("denoise: weights that are not finite give an error") {
  const AceStep model = tiny_ace_step(
      {}, [](Tensors& tensors) { tensors["decoder.proj_out.1.bias"].fill_(std::numeric_limits<float>::quiet_NaN()); });
  EXPECT_THROWS(run(model, job_for(model, 1), {1}), "a value that is not finite");
}

TEST("denoise: reports every step and can be cancelled") {
  const AceStep model = tiny_ace_step({});
  std::atomic<bool> cancelled = false;
  std::vector<int64_t> done;
  const Control control(&cancelled, [&](const Progress& progress) {
    EXPECT_EQ(progress.total, 5);
    done.push_back(progress.done);
    if (progress.done == 2) cancelled = true;
  });
  NoiseStreams noise({1});
  EXPECT_THROWS(denoise(model.dit, job_for(model, 1), noise, control), "cancelled");
  EXPECT(done == std::vector<int64_t>({0, 1, 2}));
}
