// Tests windows, reference audio and post-processing of the tasks. Most tests need no model.
#include <ATen/ATen.h>


#include "core/diffusion/flow_matching.h"
#include "core/runtime/error.h"
#include "core/tasks/postprocess.h"
#include "core/tasks/recordings.h"
#include "core/tasks/render_job.h"
#include "core/tasks/task_inputs.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr int64_t kSecond = kSampleRate, kMinute = 60 * kSampleRate;

/// Source recording of `frames` frames with latents. `window` is in seconds.
SourceRecording source_of(int64_t frames, std::optional<Window> window = std::nullopt) {
  return {.audio = recording(frames, 5),
          .latents = random_tensor({1, frames, kTinyLatent}, 6),
          .frames = frames,
          .window = place_window(window, frames * kSamplesPerFrame, kSampleRate)};
}

RenderJob job_of(Task task) {
  RenderJob job = source_job(task);
  job.edit.repaint_strength = 0.25;
  return job;
}

}  // namespace

TEST("window: defaults to the whole source; a window inside the source adds no padding") {
  EXPECT(place_window(std::nullopt, kMinute, kSampleRate) == (PlacedWindow{0, 0, 0, kMinute}));
  const PlacedWindow inner = place_window(Window{10, 20}, kMinute, kSampleRate);
  EXPECT(inner == (PlacedWindow{0, 0, 10 * kSecond, 20 * kSecond}));
  EXPECT(frames_inside(inner, 1500, kSamplesPerFrame) == (FrameRange{250, 500}));
}

TEST("window: a window beyond both ends pads the source with silence") {
  const PlacedWindow place = place_window(Window{-5, 70}, kMinute, kSampleRate);
  EXPECT(place == (PlacedWindow{5 * kSecond, 10 * kSecond, 0, 75 * kSecond}));
  EXPECT(frames_inside(place, 75 * 25, kSamplesPerFrame) == (FrameRange{0, 75 * 25}));
  EXPECT(place_window(Window{-5, 20}, kMinute, kSampleRate) == (PlacedWindow{5 * kSecond, 0, 0, 25 * kSecond}));
  EXPECT(place_window(Window{50, 61}, kMinute, kSampleRate) == (PlacedWindow{0, kSecond, 50 * kSecond, 61 * kSecond}));
}

TEST("window: rounds times to samples, and samples to at least one whole frame") {
  // Frame 7 begins at sample 13440. As a double, 0.28 s is just below this sample, and must round up to it. 30.1 s is
  // in the middle of frame 752, which is therefore left out.
  EXPECT(frames_inside(place_window(Window{0.28, 30.1}, kMinute, kSampleRate), 1500, kSamplesPerFrame) ==
         (FrameRange{7, 752}));
  EXPECT(frames_inside({0, 0, 100, 200}, 1500, kSamplesPerFrame) == (FrameRange{0, 1}));
  EXPECT(frames_inside({0, 0, 1500 * kSamplesPerFrame + 5, 1500 * kSamplesPerFrame + 9}, 1500, kSamplesPerFrame) ==
         (FrameRange{1499, 1500}));
}

TEST("repaint: mode and strength set how closely the song keeps the source outside the window") {
  const RepaintBlend balanced = repaint_blend({RepaintMode::kBalanced, 0.5, ChunkMask::kExplicit, false});
  EXPECT_EQ(balanced.injection_ratio, 0.5);
  EXPECT_EQ(balanced.crossfade_frames, 12);  // rounds half to even
  EXPECT_NEAR(balanced.crossfade_seconds, 0.025, 1e-12);
  const RepaintBlend conservative = repaint_blend({RepaintMode::kConservative, 0.9, ChunkMask::kExplicit, false});
  EXPECT_EQ(conservative.injection_ratio, 1.0);
  EXPECT_EQ(conservative.crossfade_frames, 25);
  EXPECT_NEAR(conservative.crossfade_seconds, 0.05, 1e-12);
  const RepaintBlend aggressive = repaint_blend({RepaintMode::kAggressive, 0.1, ChunkMask::kExplicit, false});
  EXPECT_EQ(aggressive.injection_ratio, 0.0);
  EXPECT_EQ(aggressive.crossfade_frames, 0);
  EXPECT(balanced.keeps_waveform && conservative.keeps_waveform && !aggressive.keeps_waveform);
  const RepaintBlend given = repaint_blend({RepaintMode::kBalanced, 0.5, ChunkMask::kExplicit, false, 40, 0.0});
  EXPECT_EQ(given.injection_ratio, 0.5);
  EXPECT_EQ(given.crossfade_frames, 40);
  EXPECT_EQ(given.crossfade_seconds, 0.0);
}

TEST("repaint: the model reads silence in the window, and the chunk mask marks it") {
  const AceStep model = tiny_ace_step({});
  const SourceRecording source = source_of(150, Window{1, 3});
  RenderJob job = job_of(Task::kRepaint);
  const TaskInputs inputs = task_inputs(model, job, source, kTinyInfo);
  const at::Tensor& heard = inputs.context.source;
  EXPECT(heard.slice(1, 25, 75).equal(model.silence.slice(1, 25, 75)));
  EXPECT(heard.slice(1, 0, 25).equal(source.latents.slice(1, 0, 25)));
  EXPECT(heard.slice(1, 75).equal(source.latents.slice(1, 75)));
  EXPECT(inputs.context.chunk_mask.slice(1, 25, 75).eq(1).all().item<bool>());
  EXPECT_EQ(inputs.context.chunk_mask.sum().item<double>(), 50.0 * kTinyLatent);
  EXPECT(inputs.repaint->clean.equal(source.latents));
  EXPECT_EQ(inputs.repaint->mask.sum().item<int64_t>(), 50);
  EXPECT_EQ(inputs.repaint->injection_ratio, 0.75);
  EXPECT_EQ(inputs.repaint->crossfade_frames, 19);
  job.edit.chunk_mask = ChunkMask::kAuto;
  EXPECT(task_inputs(model, job, source, kTinyInfo).context.chunk_mask.eq(1).all().item<bool>());
}

TEST("repaint: a window over the whole source keeps none of it") {
  const AceStep model = tiny_ace_step({});
  for (const int64_t frames : {150, 75}) {  // 75 frames are padded, and the window includes the padding
    const TaskInputs inputs = task_inputs(model, job_of(Task::kRepaint), source_of(frames), kTinyInfo);
    EXPECT(!inputs.repaint);
    EXPECT(inputs.context.source.equal(model.silence_of(std::max<int64_t>(frames, 128))));
    EXPECT(inputs.context.chunk_mask.eq(1).all().item<bool>());
  }
}

TEST("lego: the model reads the whole source, and the surroundings of the window are kept") {
  const AceStep model = tiny_ace_step({});
  const SourceRecording source = source_of(150, Window{1, 3});
  const TaskInputs inputs = task_inputs(model, job_of(Task::kLego), source, kTinyInfo);
  EXPECT(inputs.context.source.equal(source.latents));
  EXPECT_EQ(inputs.context.chunk_mask.sum().item<double>(), 50.0 * kTinyLatent);
  EXPECT_EQ(inputs.repaint->mask.sum().item<int64_t>(), 50);
}

TEST("extract, complete: the model reads the whole source with a chunk mask of 1") {
  const AceStep model = tiny_ace_step({});
  for (const Task task : {Task::kExtract, Task::kComplete}) {
    const TaskInputs inputs = task_inputs(model, job_of(task), source_of(75), kTinyInfo);
    EXPECT(inputs.context.source.slice(1, 0, 75).equal(source_of(75).latents));
    EXPECT(inputs.context.source.slice(1, 75).equal(model.silence_of(53)));
    EXPECT(inputs.context.chunk_mask.eq(1).all().item<bool>());
    EXPECT(!inputs.repaint && !inputs.context.reads_codes);
  }
}

TEST("cover: with cover_skips_codes the model reads the latents of the source") {
  const AceStep model = tiny_ace_step({});
  RenderJob job = job_of(Task::kCover);
  job.edit.cover_skips_codes = true;
  const TaskInputs inputs = task_inputs(model, job, source_of(150), kTinyInfo);
  EXPECT(inputs.context.source.equal(source_of(150).latents));
  EXPECT(inputs.context.chunk_mask.eq(1).all().item<bool>());
  EXPECT(!inputs.repaint && !inputs.context.reads_codes);
}

TEST("cover: the model reads the source decoded from its codes, and silence after the cover steps") {
  const AceStep model = tiny_ace_step({});
  const SourceRecording source = source_of(150);
  const TaskInputs inputs = task_inputs(model, job_of(Task::kCover), source, kTinyInfo);
  const at::Tensor states = random_tensor({1, 4, kTinyEncoder}, 1), plain = random_tensor({1, 4, kTinyEncoder}, 2);
  const DenoiseJob job = denoise_job(model, inputs, {.inference_steps = 2}, {}, {states, {}}, {plain, {}}, 2);
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.tokenize(source.latents, model.silence).quantized);
  const at::Tensor ones = at::ones_like(source.latents);
  EXPECT(job.conditions.context.equal(at::cat({hints, ones}, 2).expand({2, -1, -1})));
  EXPECT(job.conditions_after_cover->context.equal(at::cat({model.silence_of(150), ones}, 2).expand({2, -1, -1})));
  EXPECT(job.conditions_after_cover->encoder_states[1].equal(plain[0]));
  EXPECT(job.cover_source[1].equal(source.latents[0]));
  EXPECT(!denoise_job(model, inputs, {.inference_steps = 2}, {}, {states, {}}, {}, 2).conditions_after_cover);
}

TEST("tasks: a silent source is replaced by the model's latents of silence") {
  const AceStep model = tiny_ace_step({});
  SourceRecording source = source_of(150);
  source.latents.reset();
  const TaskInputs inputs = task_inputs(model, job_of(Task::kExtract), source, kTinyInfo);
  EXPECT(inputs.context.source.equal(model.silence_of(150)));
}

TEST("reference: the excerpt is a third each from beginning, middle and end; a short recording repeats") {
  const at::Tensor line = at::arange(100, at::kFloat).unsqueeze(0).expand({2, -1});
  const auto range = [](int64_t begin, int64_t count) { return at::arange(begin, begin + count, at::kFloat); };
  EXPECT(timbre_excerpt(line, 30)[1].equal(at::cat({range(0, 10), range(33, 10), range(90, 10)})));
  EXPECT(timbre_excerpt(line.slice(1, 0, 30), 30)[0].equal(range(0, 30)));
  const at::Tensor four = timbre_excerpt(line.slice(1, 0, 4), 9)[0];
  EXPECT(four.equal(at::tensor({0.f, 1.f, 2.f, 0.f, 1.f, 2.f, 1.f, 2.f, 3.f})));  // thirds of 0 1 2 3 0 1 2 3 0 1 2 3
}

TEST("postprocess: keeps audio outside the window, new audio inside, with a fade between") {
  const at::Tensor kept = at::full({2, 40}, 0.25f), fresh = at::full({2, 30}, 0.75f);
  at::Tensor audio = fresh.clone();
  restore_outside_window(audio, kept, 10, 20, 4);
  EXPECT(audio.slice(1, 0, 6).eq(0.25).all().item<bool>());
  EXPECT(audio.slice(1, 10, 20).eq(0.75).all().item<bool>());
  EXPECT(audio.slice(1, 24).eq(0.25).all().item<bool>());
  const at::Tensor rise = at::tensor({0.35f, 0.45f, 0.55f, 0.65f});
  EXPECT(largest_difference(audio[1].slice(0, 6, 10), rise) < 1e-6);
  EXPECT(largest_difference(audio[0].slice(0, 20, 24), rise.flip(0)) < 1e-6);
  audio = fresh.clone();
  restore_outside_window(audio, kept, 2, 30, 4);  // only two samples for a fade of four
  EXPECT(audio.slice(1, 2).eq(0.75).all().item<bool>());
  EXPECT(audio[0][0].item<float>() > 0.25f);
}

TEST("cover noise: denoising starts at the timestep nearest to 1 - strength") {
  const Schedule turbo = turbo_schedule(8);
  const auto start = [&](double strength) { return nearest_step(turbo, 1.0 - strength); };
  EXPECT_NEAR(turbo[start(0.4)], 9.0 / 14, 1e-9);
  EXPECT_EQ(turbo.size() - start(0.4), size_t{3});
  EXPECT_NEAR(turbo[start(1.0)], 0.3, 1e-9);
  EXPECT_EQ(turbo.size() - start(1.0), size_t{1});
}

TEST("tasks: renders at least 128 frames") {
  const AceStep model = tiny_ace_step({});
  EXPECT_EQ(rendered_frames(model, 75), 128);
  EXPECT_EQ(rendered_frames(model, 128), 128);
  EXPECT_EQ(rendered_frames(model, 150), 150);
}
