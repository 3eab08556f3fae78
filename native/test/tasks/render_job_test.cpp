// Tests of render jobs: validation, the silent source of text2music, and audio codes.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/tasks/render_job.h"
#include "core/tasks/task_inputs.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

/// Expects that `change` makes a valid job fail with a message that contains `fragment`.
template <typename Change>
void expect_refused(RenderJob job, const Change& change, const char* fragment,
                    ErrorCode code = ErrorCode::kBadArgument) {
  check_render_job(job, kTinyInfo);
  change(job);
  EXPECT_THROWS(check_render_job(job, kTinyInfo), fragment);
  EXPECT(code_thrown([&] { check_render_job(job, kTinyInfo); }) == code);
}

}  // namespace

TEST("render: rejects an inconsistent job") {
  const auto refused = [](auto change, const char* fragment) { expect_refused(plain_job({1, 2}), change, fragment); };
  refused([](RenderJob& job) { job.songs.clear(); }, "at least one song");
  refused([](RenderJob& job) { job.songs[0].prompt.text.clear(); }, "text prompt");
  refused([](RenderJob& job) { job.songs[0].prompt.lyrics.clear(); }, "lyric prompt");
  refused([](RenderJob& job) { job.samples = 0; }, "less than one latent frame");
  const auto codes_refused = [&](const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                                 const char* fragment) {
    refused([&](RenderJob& job) { job.songs[0].codes = first, job.songs[1].codes = second; }, fragment);
  };
  codes_refused({1, 2}, {1, 64000}, "audio code 64000 is outside 0 .. 63999");
  codes_refused({1, -2}, {1, 2}, "audio code -2 is outside 0 .. 63999");
  codes_refused({1, 2}, {1, 2}, "the song is longer than its audio codes");
  codes_refused({1, 2}, {3}, "differ in length");
  codes_refused({1, 2}, {}, "differ in length");
  codes_refused({}, {1, 2}, "differ in length");
  refused([](RenderJob& job) { job.guidance = {1.0, GuidanceVariant::kApg, 0.9, 0.1}; }, "ends before it starts");
}

TEST("render: strengths must be 0 to 1, and a cover strength below 1 needs a text2music prompt") {
  const auto refused = [](auto change, const char* fragment) { expect_refused(plain_job(), change, fragment); };
  refused([](RenderJob& job) { job.denoise.cover_strength = 0.5; }, "needs the text2music prompt");
  refused([](RenderJob& job) { job.denoise.cover_strength = 1.5; }, "cover strength must be within 0 .. 1, not 1.5");
  refused([](RenderJob& job) { job.guidance.projection.momentum = NAN; }, "eta and momentum must be finite");
  refused([](RenderJob& job) { job.guidance.projection.norm_threshold = -1; }, "must be 0 or more, not -1");
  refused([](RenderJob& job) { job.denoise.velocity_norm_threshold = -1; }, "norm threshold of velocities must be 0");
  refused([](RenderJob& job) { job.denoise.velocity_ema_factor = 2; }, "smoothing of velocities must be within 0 .. 1");
  refused([](RenderJob& job) { job.edit.latent_crossfade_frames = -1; }, "must be 0 frames or more");
  refused([](RenderJob& job) { job.edit.waveform_crossfade_seconds = 1e9; }, "within 0 .. 3600 seconds, not 1e+09");
  refused([](RenderJob& job) { job.denoise.cover_noise_strength = -0.1; },
          "cover noise strength must be within 0 .. 1");
  refused([](RenderJob& job) { job.edit.repaint_strength = std::nan(""); }, "repaint strength must be within 0 .. 1");
}

TEST("render: rejects a task without its source or with unsupported inputs") {
  for (const Task task : {Task::kCover, Task::kRepaint, Task::kLego, Task::kExtract, Task::kComplete}) {
    const std::string needs = std::string(name_of_choice(task)) + " needs source audio";
    expect_refused(source_job(task), [](RenderJob& job) { job.source.audio.reset(); }, needs.c_str());
    const auto refused = [&](auto change, const char* fragment) { expect_refused(source_job(task), change, fragment); };
    refused([](RenderJob& job) { job.source.audio = recording(1, 1).slice(1, 1); }, "less than one latent frame");
    refused([](RenderJob& job) { job.source.audio = recording(40, 1).fill_(std::nan("")); }, "not finite");
    refused([](RenderJob& job) { job.source.audio = recording(40, 1).to(at::kDouble); }, "must be float32");
    if (task == Task::kCover) continue;
    refused([](RenderJob& job) { job.songs[0].codes = {1, 2}; }, "does not accept audio codes");
  }
}

TEST("render: accepts a window for repaint and lego only, if it ends after its start and is not outside the source") {
  const Window inside{0.5, 1};
  for (const Task task : {Task::kText2Music, Task::kCover, Task::kExtract, Task::kComplete}) {
    expect_refused(
        source_job(Task::kRepaint), [&](RenderJob& job) { job.task = task, job.source.window = inside; },
        "only repaint and lego have a window");
  }
  for (const Task task : {Task::kRepaint, Task::kLego}) {
    const auto refused = [&](Window window, const char* fragment) {
      expect_refused(source_job(task, {3}, 25), [&](RenderJob& job) { job.source.window = window; }, fragment);
    };
    refused({-3, -0.5}, "is outside the source, which lasts 1 seconds");
    refused({1.5, 6}, "the window of 1.5 to 6 seconds is outside the source");
    refused({0.5, 0.5}, "must end after it starts");
    refused({0.9, 0.5}, "must end after it starts");
    refused({std::nan(""), 2}, "must have a finite start and end");
    refused({0, std::numeric_limits<double>::infinity()}, "must have a finite start and end");
  }
}

TEST("render: rejects a song longer than the checkpoint supports, whatever determines its length") {
  const auto refused = [](RenderJob job, auto change, const char* fragment) {
    expect_refused(std::move(job), change, fragment, ErrorCode::kSongTooLong);
  };
  refused(
      plain_job(), [](RenderJob& job) { job.samples = (kTinySilence + 1) * kSamplesPerFrame; },
      "the song has 201 latent frames (8 seconds), but this checkpoint supports at most 200 (8 seconds)");
  refused(
      plain_job(), [](RenderJob& job) { job.samples = 0, job.songs[0].codes.resize(41); },
      "has 205 latent frames");
  for (const Task task : {Task::kCover, Task::kRepaint, Task::kLego, Task::kExtract, Task::kComplete}) {
    refused(
        source_job(task), [](RenderJob& job) { job.source.audio = recording(kTinySilence + 1, 1); },
        "source audio has 201 latent");
  }
  for (const Task task : {Task::kRepaint, Task::kLego}) {
    const RenderJob job = source_job(task, {3}, 25);
    refused(
        job, [](RenderJob& changed) { changed.source.window = {-1, 7.2}; },
        "the window of -1 to 7.2 seconds has 205 latent frames");
    refused(job, [](RenderJob& changed) { changed.source.window = {0.5, 1e300}; }, "supports at most");
  }
}

TEST("render: rejects an unusable reference") {
  const auto refused = [](auto change, const char* fragment) { expect_refused(plain_job(), change, fragment); };
  refused([](RenderJob& job) { job.reference.audio = at::zeros({2, 5000}); }, "the reference audio is silent");
  refused([](RenderJob& job) { job.reference.audio = at::zeros({2, 0}); }, "the reference audio has no samples");
  refused([](RenderJob& job) { job.reference.audio = at::full({2, 9}, std::nan("")); }, "not finite");
}

TEST("render: text2music starts from at least 128 frames of silence") {
  const AceStep model = tiny_ace_step({});
  RenderJob job = plain_job();
  const ContextInputs source = text2music_context(model, job, song_frames(job, kTinyInfo));
  EXPECT(source.source.equal(model.silence_of(kFrames)));
  EXPECT(source.chunk_mask.equal(at::ones_like(source.source)));
  job.samples = 40 * kSamplesPerFrame;
  EXPECT_EQ(text2music_context(model, job, song_frames(job, kTinyInfo)).source.size(1), 128);
  EXPECT_EQ(song_frames(job, kTinyInfo), 40);
  ++job.samples;
  EXPECT_EQ(song_frames(job, kTinyInfo), 41);
}

TEST("render: audio codes set the length of the songs and replace the source of each") {
  const AceStep model = tiny_ace_step({});
  RenderJob job = plain_job({1, 2});
  job.samples = 0;
  job.songs[0].codes.assign(30, 7);
  job.songs[1].codes.assign(30, 63999);
  EXPECT_EQ(song_frames(job, kTinyInfo), 150);
  const ContextInputs source = text2music_context(model, job, song_frames(job, kTinyInfo));
  EXPECT(!source.reads_codes);
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.embed(at::full({1, 30}, 63999, at::kLong)));
  EXPECT(largest_difference(source.source[1], hints[0]) < 1e-5);
  EXPECT(largest_difference(source.source[0], source.source[1]) > 1e-3);
  job.songs[0].codes = {7, 8};
  job.songs[1].codes = {9, 10};
  EXPECT(text2music_context(model, job, song_frames(job, kTinyInfo))
             .source[0]
             .narrow(0, 10, 118)
             .equal(model.silence_of(118)[0]));
  job.songs[1].codes = {9, 64000};
  EXPECT_THROWS(text2music_context(model, job, song_frames(job, kTinyInfo)), "audio code 64000 is outside");
}
