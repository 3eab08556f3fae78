// Tests jobs that contain latents instead of recordings, and songs that are returned as latents.
#include <ATen/ATen.h>

#include <cmath>

#include "core/tasks/loudness.h"
#include "core/tasks/recordings.h"
#include "core/tasks/render_job.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

/// Latents [frames, C] of a recording, as the renderer encodes it.
at::Tensor encoded(Renderer& renderer, const at::Tensor& audio) {
  return renderer.encode_posterior(audio, Control()).mean[0].t().contiguous();
}

/// Replaces the source recording of `job` with the latents of the recording.
RenderJob from_latents(Renderer& renderer, RenderJob job) {
  job.source.latents = encoded(renderer, job.source.audio);
  job.samples = job.source.audio.size(1);
  job.source.audio.reset();
  return job;
}

}  // namespace

TEST("latents: source latents give the same song as their recording") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : {Task::kCover, Task::kExtract, Task::kComplete}) {
    const RenderJob job = source_job(task);
    EXPECT(first_song(renderer, from_latents(renderer, job)).equal(first_song(renderer, job)));
  }
}

TEST("latents: reference latents give the same song as their recording") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = source_job(Task::kCover), plain = job;
  job.reference.audio = recording(20, 70);
  const at::Tensor song = first_song(renderer, job);
  EXPECT(relative_error(first_song(renderer, plain), song) > 1e-3);
  job.reference.latents = encoded(renderer, timbre_excerpt(job.reference.audio, kTinyTimbreFrames * kSamplesPerFrame));
  job.reference.audio.reset();
  EXPECT(first_song(renderer, job).equal(song));
}

TEST("latents: a result has the latents of each song, cut to its length") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = plain_job({3, 4});
  job.samples = kSourceFrames * kSamplesPerFrame - 700;
  const RenderResult result = renderer.render(job, Control());
  EXPECT_EQ(result.songs.size(), size_t{2});
  EXPECT(result.songs[0].latents.sizes() == at::IntArrayRef({kSourceFrames, kTinyLatent}));
  EXPECT(result.songs[1].latents.is_contiguous() && !result.songs[0].latents.equal(result.songs[1].latents));
}

TEST("latents: repaint keeps the latents of its source outside the window") {
  Renderer renderer = load(write_checkpoints());
  const RenderJob first = [] {
    RenderJob job = plain_job();
    job.samples = 40 * kSamplesPerFrame;
    return job;
  }();
  RenderJob repaint = first;
  repaint.task = Task::kRepaint;
  repaint.source.latents = renderer.render(first, Control()).songs[0].latents;
  repaint.source.window = Window{0.8, 1.2};
  repaint.edit.repaint_mode = RepaintMode::kAggressive;
  repaint.songs[0].seed = 5;
  const at::Tensor kept = repaint.source.latents, made = renderer.render(repaint, Control()).songs[0].latents;
  EXPECT(made.slice(0, 0, 20).equal(kept.slice(0, 0, 20)));
  EXPECT(made.slice(0, 30).equal(kept.slice(0, 30)));
  EXPECT(relative_error(made.slice(0, 20, 30), kept.slice(0, 20, 30)) > 1e-3);
}

TEST("latents: the gain of a song's latents keeps the level of the song outside a window") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = plain_job();
  job.samples = 60 * kSamplesPerFrame;
  const RenderResult song = renderer.render(job, Control());
  job.task = Task::kRepaint;
  job.source.latents = song.songs[0].latents;
  job.source.window = Window{1.0, 1.4};
  job.edit.repaint_mode = RepaintMode::kAggressive;
  job.songs[0].seed = 5;
  const auto outside = [](const at::Tensor& audio) { return audio.slice(1, 0, kSampleRate / 2); };
  // Other noise makes a new part of another peak, to which the whole song is normalised.
  const at::Tensor normalized = renderer.render(job, Control()).songs[0].audio;
  EXPECT(relative_error(outside(normalized), outside(song.songs[0].audio)) > 1e-3);
  job.source.gain = song.songs[0].gain;
  const RenderResult repainted = renderer.render(job, Control());
  EXPECT_NEAR(relative_error(outside(repainted.songs[0].audio), outside(song.songs[0].audio)), 0.0, 1e-4);
  EXPECT_EQ(repainted.songs[0].gain, song.songs[0].gain);
  job.source.gain = 0.0;
  EXPECT_THROWS(renderer.render(job, Control()), "the gain of src_latents must be a positive number");
}

TEST("latents: a new part is about as loud as the decoded latents beside it, whether their gain is known or not") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = from_latents(renderer, source_job(Task::kRepaint, {3}, 60));
  job.source.latents = 10.0 * job.source.latents;  // decoded, they are louder than the part that the model makes
  job.source.window = Window{1.0, 1.4};
  job.edit.repaint_mode = RepaintMode::kAggressive;
  for (const std::optional<double> gain : {std::optional<double>(), std::optional(0.05), std::optional(0.5)}) {
    job.source.gain = gain;
    const at::Tensor song = first_song(renderer, job);
    const int64_t begin = kSampleRate, end = kSampleRate * 14 / 10;
    EXPECT_NEAR(*loudness_of(song.slice(1, begin, end)), *loudness_beside(song, begin, end), 1.5);
  }
}

TEST("latents: a window that starts before the source pads it by whole frames") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = from_latents(renderer, source_job(Task::kRepaint));
  job.source.window = Window{-0.1, 0.2};  // 2.5 frames
  job.edit.repaint_mode = RepaintMode::kAggressive;
  const RenderResult result = renderer.render(job, Control());
  EXPECT_EQ(result.samples_per_channel, (kSourceFrames + 3) * kSamplesPerFrame);
  EXPECT(result.songs[0].latents.slice(0, 3 + 5).equal(job.source.latents.slice(0, 5)));
}

TEST("latents: rejects latents of another shape or length, or with values that are not finite, by name") {
  const RenderJob job = [] {
    RenderJob cover = source_job(Task::kCover);
    cover.source.audio.reset();
    cover.source.latents = at::zeros({kSourceFrames, kTinyLatent});
    cover.reference.latents = at::zeros({3, kTinyLatent});
    cover.samples = kSourceFrames * kSamplesPerFrame;
    return cover;
  }();
  check_render_job(job, kTinyInfo);
  const auto refused = [&](auto change, const char* fragment) {
    RenderJob other = job;
    change(other);
    EXPECT_THROWS(check_render_job(other, kTinyInfo), fragment);
    EXPECT(code_thrown([&] { check_render_job(other, kTinyInfo); }) == ErrorCode::kBadArgument);
  };
  refused([](RenderJob& job) { job.source.latents = at::zeros({9, kTinyLatent + 1}); }, "src_latents has shape [9, ");
  refused([](RenderJob& job) { job.reference.latents = at::zeros({9, 3}); }, "ref_latents has shape [9, 3]");
  refused([](RenderJob& job) { job.source.latents = job.source.latents + std::nanf(""); },
          "src_latents contains a value that is not finite");
  refused([](RenderJob& job) { job.reference.latents = job.reference.latents + INFINITY; },
          "ref_latents contains a value that is not finite");
  refused([](RenderJob& job) { job.samples += 1; }, "src_latents has 10 frames, too few or too many for 19201 samples");
}
