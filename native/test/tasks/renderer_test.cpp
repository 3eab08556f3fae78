// Tests whole songs from tiny checkpoints: prompt ids in, samples out.
#include <ATen/ATen.h>

#include <atomic>
#include <limits>
#include <vector>

#include "core/tasks/postprocess.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

/// Cancels once `stage` has been reported.
class CancelIn {
 public:
  explicit CancelIn(Stage stage)
      : control_(&cancelled_, [this, stage](const Progress& progress) {
          if (progress.stage == stage) cancelled_ = true;
        }) {}
  const Control& control() const { return control_; }

 private:
  std::atomic<bool> cancelled_ = false;
  Control control_;
};

}  // namespace

TEST("renderer: a song is stereo, of the requested length, at -1 dB and deterministic") {
  Renderer renderer = load(write_checkpoints());
  const RenderResult result = renderer.render(plain_job(), Control());
  const at::Tensor& audio = result.songs.at(0).audio;
  EXPECT_EQ(result.songs.size(), size_t{1});
  EXPECT_EQ(result.samples_per_channel, kFrames * kSamplesPerFrame);
  EXPECT((audio.sizes() == at::IntArrayRef{2, kFrames * kSamplesPerFrame}));
  EXPECT(audio.is_contiguous() && audio.is_cpu() && audio.scalar_type() == at::kFloat);
  EXPECT_NEAR(audio.abs().max().item<double>(), kPeakAmplitude, 1e-6);
  EXPECT(first_song(renderer, plain_job()).equal(audio));
  EXPECT(relative_error(first_song(renderer, plain_job({4})), audio) > 1e-2);
}

TEST("renderer: a listener gets each song of a batch before normalisation") {
  Renderer renderer = load(write_checkpoints());
  std::vector<std::vector<at::Tensor>> parts(2);
  const RenderResult result = renderer.render(
      plain_job({3, 4}), Control(),
      [&](int64_t item, const at::Tensor& audio) { parts.at(static_cast<size_t>(item)).push_back(audio); });
  for (const size_t item : {0, 1}) {
    at::Tensor heard = at::cat(parts[item]).t().contiguous();
    normalize_peak(heard);
    EXPECT(heard.equal(result.songs[item].audio));
  }
}

TEST("renderer: prompt and lyrics change the song") {
  Renderer renderer = load(write_checkpoints());
  const at::Tensor audio = first_song(renderer, plain_job());
  RenderJob other = plain_job();
  other.songs[0].prompt.text = {1, 2, 40};
  EXPECT(relative_error(first_song(renderer, other), audio) > 1e-3);
  other = plain_job();
  other.songs[0].prompt.lyrics = {4, 6};
  EXPECT(relative_error(first_song(renderer, other), audio) > 1e-3);
}

TEST("renderer: audio codes determine length and song") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = plain_job();
  job.samples = 0;
  job.songs[0].codes = some_codes(7);
  const at::Tensor audio = first_song(renderer, job);
  EXPECT_EQ(audio.size(1), kFrames * kSamplesPerFrame);
  EXPECT(relative_error(audio, first_song(renderer, plain_job())) > 1e-2);
  job.songs[0].codes = some_codes(8);
  EXPECT(relative_error(first_song(renderer, job), audio) > 1e-2);
}

TEST("renderer: a song may end within its last frame, also for a listener, with and without codes") {
  constexpr int64_t kSamples = 129 * kSamplesPerFrame + 77;
  Renderer renderer = load(write_checkpoints());
  for (const bool has_codes : {false, true}) {
    RenderJob job = plain_job();
    job.samples = kSamples;
    if (has_codes) job.songs[0].codes = some_codes(7);
    std::vector<at::Tensor> parts;
    const RenderResult result =
        renderer.render(job, Control(), [&](int64_t, const at::Tensor& audio) { parts.push_back(audio); });
    EXPECT_EQ(result.samples_per_channel, kSamples);
    EXPECT((result.songs[0].audio.sizes() == at::IntArrayRef{2, kSamples}));
    EXPECT(result.songs[0].audio.is_contiguous());
    at::Tensor heard = at::cat(parts).t().contiguous();
    normalize_peak(heard);
    EXPECT(heard.equal(result.songs[0].audio));
  }
}

TEST("renderer: an item does not depend on its batch, in both families, with and without codes") {
  for (const bool is_xl : {false, true}) {
    Renderer renderer = load(write_checkpoints({.is_xl = is_xl}));
    for (const bool has_codes : {false, true}) {
      RenderJob both = plain_job({3, 4}), alone = plain_job({4});
      if (has_codes) {
        both.songs[0].codes = some_codes(7);
        both.songs[1].codes = some_codes(8);
        alone.songs[0].codes = some_codes(8);
      }
      const RenderResult pair = renderer.render(both, Control());
      EXPECT_EQ(pair.songs.size(), size_t{2});
      EXPECT(relative_error(pair.songs[1].audio, first_song(renderer, alone)) < 1e-3);
      EXPECT(relative_error(pair.songs[1].audio, pair.songs[0].audio) > 1e-2);
    }
  }
}

TEST("renderer: items of a batch have their own prompts, of any length") {
  Renderer renderer = load(write_checkpoints());
  RenderJob both = plain_job({3, 4});
  both.songs[1].prompt = {.text = {7, 8, 9, 10, 11, 12}, .lyrics = {6}};
  const RenderResult pair = renderer.render(both, Control());
  for (const size_t item : {0, 1}) {
    RenderJob alone = plain_job();
    alone.songs = {both.songs[item]};
    EXPECT(relative_error(pair.songs.at(item).audio, first_song(renderer, alone)) < 1e-4);
    alone.songs[0].prompt = both.songs[1 - item].prompt;
    EXPECT(relative_error(pair.songs.at(item).audio, first_song(renderer, alone)) > 1e-3);
  }
}

TEST("renderer: the sde solver gives a different song, deterministically") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = plain_job();
  job.denoise.infer_method = InferMethod::kSde;
  const at::Tensor audio = first_song(renderer, job);
  EXPECT(first_song(renderer, job).equal(audio));
  EXPECT(relative_error(audio, first_song(renderer, plain_job())) > 1e-2);
}

TEST("renderer: guidance affects base models and is ignored on turbo models") {
  Renderer base = load(write_checkpoints()), turbo = load(write_checkpoints({.is_turbo = true}));
  RenderJob projected = plain_job(), by_angle = plain_job();
  projected.guidance.scale = by_angle.guidance.scale = 7.0;
  by_angle.guidance.variant = GuidanceVariant::kAdg;
  const at::Tensor plain = first_song(base, plain_job());
  EXPECT(relative_error(first_song(base, projected), plain) > 1e-3);
  EXPECT(relative_error(first_song(base, by_angle), plain) > 1e-3);
  EXPECT(relative_error(first_song(base, by_angle), first_song(base, projected)) > 1e-3);
  EXPECT(first_song(turbo, projected).equal(first_song(turbo, plain_job())));
}

TEST("renderer: a song shorter than 128 frames is rendered with 128 frames and cut") {
  Renderer renderer = load(write_checkpoints());
  RenderJob brief = plain_job(), whole = plain_job();
  brief.samples = 40 * kSamplesPerFrame;
  whole.samples = 128 * kSamplesPerFrame;
  const at::Tensor audio = first_song(renderer, brief);
  EXPECT_EQ(audio.size(1), 40 * kSamplesPerFrame);
  // The last frames differ, because the decoder reads 9 frames ahead, so only 30 of 40 frames are compared. The songs
  // have different peaks, so the gain is ignored.
  const auto shape_of = [](const at::Tensor& song) {
    const at::Tensor start = song.narrow(1, 0, 30 * kSamplesPerFrame);
    return start / start.norm();
  };
  EXPECT(relative_error(shape_of(audio), shape_of(first_song(renderer, whole))) < 1e-4);
}

TEST("renderer: unloading models between stages changes no sample") {
  const Renderer::Directories directories = write_checkpoints();
  RenderJob job = plain_job();
  job.songs[0].codes = some_codes(7);
  Renderer resident = load(directories);
  const at::Tensor expected = first_song(resident, job);
  for (const bool model : {false, true}) {
    Renderer renderer = load(directories, {.model = model, .text_encoder_and_vae = false});
    EXPECT(first_song(renderer, job).equal(expected));
    EXPECT(first_song(renderer, job).equal(expected));
  }
}

TEST("renderer: renders in bfloat16, deterministically") {
  Renderer renderer = load(write_checkpoints(), {}, {at::kCPU, at::kBFloat16});
  RenderJob job = plain_job();
  job.songs[0].codes = some_codes(7);
  job.guidance.scale = 3.0;
  const at::Tensor audio = first_song(renderer, job);
  EXPECT_EQ(audio.size(1), kFrames * kSamplesPerFrame);
  EXPECT_NEAR(audio.abs().max().item<double>(), kPeakAmplitude, 1e-6);
  EXPECT(first_song(renderer, job).equal(audio));
}

TEST("renderer: every stage reports progress from 0 to its total") {
  Renderer renderer = load(write_checkpoints());
  std::vector<Progress> reports;
  const Control control(nullptr, [&](const Progress& progress) { reports.push_back(progress); });
  renderer.render(plain_job({3, 4}), control);
  std::vector<Stage> stages;
  for (const Progress& progress : reports) {
    const bool enters = stages.empty() || stages.back() != progress.stage;
    if (enters) stages.push_back(progress.stage);
    if (enters) EXPECT_EQ(progress.done, 0);
    EXPECT(progress.done <= progress.total);
  }
  EXPECT((stages == std::vector<Stage>{Stage::kConditions, Stage::kDenoise, Stage::kDecode}));
  EXPECT_EQ(reports.back().done, reports.back().total);
}

TEST("renderer: a job can be cancelled in any stage without affecting the next") {
  const Renderer::Directories directories = write_checkpoints();
  Renderer renderer = load(directories), offloaded = load(directories, {.model = false, .text_encoder_and_vae = false});
  const at::Tensor expected = first_song(renderer, plain_job());
  for (Renderer* one : {&renderer, &offloaded}) {
    for (const Stage stage : {Stage::kLoad, Stage::kConditions, Stage::kDenoise, Stage::kDecode}) {
      if (stage == Stage::kLoad && one == &renderer) continue;  // its models are already loaded
      const CancelIn cancel(stage);
      const auto code = code_thrown([&] { one->render(plain_job(), cancel.control()); });
      EXPECT(code == ErrorCode::kCancelled);
    }
    EXPECT(first_song(*one, plain_job()).equal(expected));
  }
  EXPECT(code_thrown([&] { Renderer(directories, kFloat32, {}, CancelIn(Stage::kLoad).control()); }) ==
         ErrorCode::kCancelled);
}

TEST("renderer: rejects impossible jobs with the reason") {
  Renderer renderer = load(write_checkpoints());
  const auto refused = [&](auto change, const char* fragment) {
    RenderJob job = plain_job();
    change(job);
    EXPECT_THROWS(renderer.render(job, Control()), fragment);
    EXPECT(code_thrown([&] { renderer.render(job, Control()); }) == ErrorCode::kBadArgument);
  };
  refused([](RenderJob& job) { job.songs[0].prompt.text = {1, 50}; }, "token id 50 is outside the vocabulary of 50");
  refused([](RenderJob& job) { job.songs[0].prompt.lyrics = {-1}; }, "token id -1 is outside");
  refused([](RenderJob& job) { job.songs[0].codes = {1, 64000}; }, "audio code 64000 is outside 0 .. 63999");
  refused([](RenderJob& job) { job.denoise.inference_steps = 0; }, "inference steps must be 1 to 1000, not 0");
  refused([](RenderJob& job) { job.denoise.shift = -1.0; }, "shift must be a positive number");
  refused([](RenderJob& job) { job.denoise.timesteps = std::vector<double>{0.5, 0.7, 0.0}; }, "descend strictly");
  refused([](RenderJob& job) { job.songs.clear(); }, "at least one song");
}

TEST("renderer: loading rejects checkpoints that do not match") {
  Renderer::Directories directories = write_checkpoints();
  directories.vae = write_tiny_vae(WeightLayout::kWeightNorm, 4);
  EXPECT_THROWS(load(directories), "the VAE's latent space has 4 channels, the DiT expects 6");
  EXPECT(code_thrown([&] { load(directories); }) == ErrorCode::kBadCheckpoint);
  directories.text_encoder = fixture_directory();
  EXPECT(code_thrown([&] { load(directories); }) == ErrorCode::kBadCheckpoint);
}

TEST("renderer: lists tensors that no loader reads") {
  Renderer::Directories directories = write_checkpoints();
  EXPECT(load(directories).info().unused_tensors.empty());
  directories.model =
      write_tiny_ace_step({}, [](Tensors& tensors) { tensors["decoder.layers.2.mlp_norm.weight"] = at::ones({32}); });
  EXPECT(load(directories).info().unused_tensors ==
         std::vector<std::string>{directories.model.path + ": decoder.layers.2.mlp_norm.weight"});
}

TEST("renderer: weights that are not finite give an error and no audio") {
  const auto poison = [](const char* name) {
    return [name](Tensors& tensors) { tensors.at(name).fill_(std::numeric_limits<float>::quiet_NaN()); };
  };
  Renderer::Directories broken = write_checkpoints();
  broken.model = write_tiny_ace_step({}, poison("decoder.proj_out.1.bias"));
  Renderer by_model = load(broken);
  EXPECT(code_thrown([&] { by_model.render(plain_job(), Control()); }) == ErrorCode::kNotFinite);

  broken = write_checkpoints();
  broken.vae = write_tiny_vae(WeightLayout::kPlain, kTinyLatent, poison("decoder.conv2.weight"));
  Renderer by_vae = load(broken);
  EXPECT(code_thrown([&] { by_vae.render(plain_job(), Control()); }) == ErrorCode::kNotFinite);
}
