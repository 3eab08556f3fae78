// Renders songs of every task with tiny checkpoints. Tests the effects of source, window and reference.
#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

#include "core/tasks/loudness.h"
#include "core/tasks/postprocess.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr Task kSourceTasks[] = {Task::kCover, Task::kRepaint, Task::kLego, Task::kExtract, Task::kComplete};
constexpr RepaintMode kModes[] = {RepaintMode::kConservative, RepaintMode::kBalanced, RepaintMode::kAggressive};
constexpr double kWindowStart = 0.4, kWindowEnd = 0.6;

at::Tensor seconds_of(const at::Tensor& audio, double start, double end) {
  return audio.slice(1, static_cast<int64_t>(start * kSampleRate), static_cast<int64_t>(end * kSampleRate));
}

/// Makes a job of the task with a source recording of 1 second and an edit window.
RenderJob windowed_job(Task task, const Window& window = {kWindowStart, kWindowEnd}) {
  RenderJob job = source_job(task, {3}, 25);
  job.source.window = window;
  return job;
}

/// Encodes and decodes audio with the VAE.
at::Tensor through_the_codec(Renderer& renderer, const std::string& vae_directory, const at::Tensor& audio) {
  const Vae vae = Vae::load(vae_directory, kFloat32, Control());
  return vae.decode(renderer.encode_posterior(audio, Control()).mean, Control())[0];
}

}  // namespace

TEST("tasks: each song has the length of its source, is deterministic and depends on the source") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : kSourceTasks) {
    const RenderJob job = source_job(task);
    const RenderResult result = renderer.render(job, Control());
    EXPECT_EQ(result.samples_per_channel, kSourceFrames * kSamplesPerFrame);
    const at::Tensor& audio = result.songs.at(0).audio;
    EXPECT((audio.sizes() == at::IntArrayRef{2, kSourceFrames * kSamplesPerFrame}));
    EXPECT(audio.is_contiguous() && audio.scalar_type() == at::kFloat);
    EXPECT_NEAR(audio.abs().max().item<double>(), kPeakAmplitude, 1e-6);
    EXPECT(first_song(renderer, job).equal(audio));
    RenderJob other = job;
    other.source.audio = recording(kSourceFrames, 61);
    // A repaint of the whole source does not depend on the source.
    if (task != Task::kRepaint) EXPECT(relative_error(first_song(renderer, other), audio) > 1e-3);
  }
}

TEST("tasks: an item does not depend on its batch") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : kSourceTasks) {
    RenderJob both = source_job(task, {3, 4}), alone = source_job(task, {4});
    if (task == Task::kRepaint) both.source.window = alone.source.window = Window{0.1, 0.2};
    const RenderResult pair = renderer.render(both, Control());
    EXPECT(relative_error(pair.songs.at(1).audio, first_song(renderer, alone)) < 1e-3);
    EXPECT(relative_error(pair.songs[1].audio, pair.songs[0].audio) > 1e-3);
  }
}

TEST("tasks: lego without a window, extract and complete differ only in their prompts") {
  Renderer renderer = load(write_checkpoints());
  const at::Tensor extracted = first_song(renderer, source_job(Task::kExtract));
  EXPECT(first_song(renderer, source_job(Task::kComplete)).equal(extracted));
  EXPECT(first_song(renderer, source_job(Task::kLego)).equal(extracted));
  EXPECT(!first_song(renderer, source_job(Task::kCover)).equal(extracted));
}

TEST("tasks: a silent source gives the same song as text2music") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = source_job(Task::kComplete);
  job.source.audio = at::zeros_like(job.source.audio);
  RenderJob unsourced = plain_job();
  unsourced.samples = kSourceFrames * kSamplesPerFrame;
  EXPECT(first_song(renderer, job).equal(first_song(renderer, unsourced)));
}

TEST("tasks: a song is as long as its source, to the sample, even if that is not a whole number of frames") {
  constexpr int64_t kSamples = 41 * kSamplesPerFrame - 1;
  Renderer renderer = load(write_checkpoints());
  for (const Task task : kSourceTasks) {
    RenderJob job = source_job(task);
    job.source.audio = recording(41, 60).slice(1, 0, kSamples);
    const at::Tensor whole = first_song(renderer, job);
    EXPECT_EQ(whole.size(1), kSamples);
    if (task != Task::kRepaint && task != Task::kLego) continue;
    job.source.window = {0.5, static_cast<double>(kSamples) / kSampleRate};
    const at::Tensor to_its_end = first_song(renderer, job);
    EXPECT_EQ(to_its_end.size(1), kSamples);
    EXPECT(seconds_of(to_its_end, 0.0, 0.45).equal(seconds_of(job.source.audio, 0.0, 0.45)));
    job.source.window = {0.5, 1.0};
    const at::Tensor within = first_song(renderer, job);
    EXPECT_EQ(within.size(1), kSamples);
    EXPECT(within.slice(1, 50400).equal(job.source.audio.slice(1, 50400)));  // kept to the last sample
  }
}

TEST("repaint, lego: the song equals the source outside the window, within codec error, and is new inside") {
  const Renderer::Directories directories = write_checkpoints();
  Renderer renderer = load(directories);
  const at::Tensor source = 0.5 * recording(60, 60);  // as loud as music
  const at::Tensor decoded = through_the_codec(renderer, directories.vae.path, source);
  for (const Task task : {Task::kRepaint, Task::kLego}) {
    for (const RepaintMode mode : kModes) {
      if (task == Task::kLego && mode != RepaintMode::kBalanced) continue;  // repaint tests the other modes
      RenderJob job = windowed_job(task, {1.0, 1.4});
      job.source.audio = source;
      job.edit.repaint_mode = mode;
      const at::Tensor song = first_song(renderer, job);
      EXPECT_EQ(song.size(1), source.size(1));
      // Without a splice, the decoder changes up to 9 frames (0.36 s) on both sides of the window. With a splice, only
      // a fade of up to 0.05 s changes.
      const bool spliced = mode != RepaintMode::kAggressive;
      const double reach = spliced ? 0.05 : 0.36;
      for (const auto& [start, end] : {std::pair(0.0, 1.0 - reach), std::pair(1.4 + reach, 2.4)}) {
        const at::Tensor outside = seconds_of(song, start, end);
        if (spliced) EXPECT(outside.equal(seconds_of(source, start, end)));
        if (!spliced) EXPECT(relative_error(outside, seconds_of(decoded, start, end)) < 1e-4);
      }
      EXPECT(relative_error(seconds_of(song, 1.0, 1.4), seconds_of(source, 1.0, 1.4)) > 0.1);
    }
  }
}

TEST("repaint: the source outside a window keeps its level") {
  Renderer renderer = load(write_checkpoints());
  for (const double level : {0.01, 9.0}) {
    RenderJob job = windowed_job(Task::kRepaint);
    job.source.audio = (job.source.audio * level).clamp(-1.0, 1.0);
    const at::Tensor song = first_song(renderer, job);
    EXPECT(seconds_of(song, 0.0, 0.35).equal(seconds_of(job.source.audio, 0.0, 0.35)));
    EXPECT(song.abs().max().item<double>() <= 1.0 + 1e-6);
  }
}

TEST("repaint, lego: the new part follows the level of a source that is quieter than music") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : {Task::kRepaint, Task::kLego}) {
    for (const Window& window : {Window{kWindowStart, kWindowEnd}, Window{-0.2, 0.2}, Window{0.9, 1.2}}) {
      RenderJob quiet = windowed_job(task, window), quieter = quiet;
      quiet.source.audio = 0.05 * quiet.source.audio;
      quieter.source.audio = 0.1 * quiet.source.audio;
      EXPECT(relative_error(0.1 * first_song(renderer, quiet), first_song(renderer, quieter)) < 1e-3);
    }
  }
}

TEST("repaint, lego: the new part is about as loud as the source beside it and in its window") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : {Task::kRepaint, Task::kLego}) {
    for (const auto& [window, left] : {std::pair(Window{kWindowStart, kWindowEnd}, 0.0),
                                       std::pair(Window{-0.2, 0.2}, 0.2), std::pair(Window{0.9, 1.2}, 0.0)}) {
      for (const double level : {0.05, 0.35, 3.0}) {
        RenderJob job = windowed_job(task, window);
        job.source.audio = (level * job.source.audio).clamp(-1.0, 1.0);
        const at::Tensor made = first_song(renderer, job);
        const auto samples = [](double seconds) { return std::lrint(seconds * kSampleRate); };
        const int64_t start = samples(window.start_seconds), end = samples(window.end_seconds);
        const std::optional<double> original = loudness_of(job.source.audio.slice(1, std::max<int64_t>(0, start), end));
        const LoudnessRange range = *suitable_loudness(loudness_beside(job.source.audio, start, end), original);
        const double found = *loudness_of(seconds_of(made, window.start_seconds + left, window.end_seconds + left));
        EXPECT_NEAR(found, 0.5 * (range.low + range.high), 0.5 * (range.high - range.low) + 0.5);
      }
    }
  }
}

TEST("repaint: silence beside and in the window sets no loudness, and one of them is enough") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = windowed_job(Task::kRepaint);
  const at::Tensor silence = at::zeros_like(job.source.audio);
  const auto part_of = [&](const at::Tensor& source) {
    job.source.audio = source;
    return seconds_of(first_song(renderer, job), kWindowStart, kWindowEnd);
  };
  EXPECT(part_of(silence).abs().max().item<double>() > 1e-3);
  const auto begin = std::lrint(kWindowStart * kSampleRate), end = std::lrint(kWindowEnd * kSampleRate);
  at::Tensor gap = recording(25, 60), island = silence.clone();
  island.slice(1, begin, end).copy_(gap.slice(1, begin, end));
  gap.slice(1, begin, end).fill_(0.0);
  EXPECT_NEAR(*loudness_of(part_of(gap)), *loudness_beside(gap, begin, end), 1.5);
  EXPECT_NEAR(*loudness_of(part_of(island)), *loudness_of(island.slice(1, begin, end)), 1.5);
}

TEST("tasks: the level of the source or the reference does not change a song that keeps no part of it") {
  Renderer renderer = load(write_checkpoints());
  for (const Task task : {Task::kCover, Task::kLego, Task::kExtract, Task::kComplete}) {
    RenderJob quiet = source_job(task);
    quiet.source.audio = 0.05 * quiet.source.audio;
    quiet.reference.audio = 0.05 * recording(20, 70);
    RenderJob quieter = quiet;
    quieter.source.audio = 0.1 * quiet.source.audio;
    quieter.reference.audio = 0.1 * quiet.reference.audio;
    EXPECT(relative_error(first_song(renderer, quieter), first_song(renderer, quiet)) < 1e-3);
    EXPECT(renderer.encode_codes(quieter.source.audio, Control()) ==
           renderer.encode_codes(quiet.source.audio, Control()));
  }
}

TEST("repaint: a source of faint noise is not amplified") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = windowed_job(Task::kRepaint);
  job.source.audio = 1e-3 * job.source.audio;
  EXPECT_EQ(renderer.render(job, Control()).songs.at(0).gain, 1.0);
}

TEST("repaint: a higher strength crossfades over less of the source") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = windowed_job(Task::kRepaint);
  const auto changed_before = [&](double strength) {
    job.edit.repaint_strength = strength;
    const at::Tensor changed = first_song(renderer, job).ne(job.source.audio).any(0).nonzero();
    return static_cast<int64_t>(kWindowStart * kSampleRate) - changed.min().item<int64_t>();
  };
  EXPECT_EQ(changed_before(0.0), 2400);
  EXPECT_EQ(changed_before(0.5), 1200);
  EXPECT_EQ(changed_before(1.0), 0);
}

TEST("repaint: a job can set the lengths of its cross-fades") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = windowed_job(Task::kRepaint);
  const at::Tensor usual = first_song(renderer, job);
  job.edit.latent_crossfade_frames = 2;
  const at::Tensor shorter = first_song(renderer, job);
  EXPECT(!shorter.equal(usual));
  const auto changed_before = [&](double seconds) {
    job.edit.waveform_crossfade_seconds = seconds;
    const at::Tensor changed = first_song(renderer, job).ne(job.source.audio).any(0).nonzero();
    return static_cast<int64_t>(kWindowStart * kSampleRate) - changed.min().item<int64_t>();
  };
  EXPECT_EQ(changed_before(0.1), 4800);
  EXPECT_EQ(changed_before(0.0), 0);
}

TEST("repaint: a window beyond either end makes the song longer") {
  Renderer renderer = load(write_checkpoints());
  const at::Tensor source = windowed_job(Task::kRepaint).source.audio;
  const at::Tensor earlier = first_song(renderer, windowed_job(Task::kRepaint, {-0.5, 0.5}));
  EXPECT_EQ(earlier.size(1), kSampleRate * 3 / 2);  // 37.5 frames
  EXPECT(seconds_of(earlier, 1.05, 1.5).equal(seconds_of(source, 0.55, 1.0)));
  const at::Tensor later = first_song(renderer, windowed_job(Task::kRepaint, {0.5, 2.0}));
  EXPECT_EQ(later.size(1), 2 * kSampleRate);
  EXPECT(seconds_of(later, 0.0, 0.45).equal(seconds_of(source, 0.0, 0.45)));
  EXPECT(seconds_of(later, 1.0, 2.0).abs().max().item<double>() > 1e-3);
  const at::Tensor both = first_song(renderer, windowed_job(Task::kRepaint, {-1.0, 2.0}));
  EXPECT_EQ(both.size(1), 3 * kSampleRate);
  EXPECT_NEAR(both.abs().max().item<double>(), kPeakAmplitude, 1e-6);  // keeps no sample of the source
}

TEST("repaint: the new part depends on the source around the window and on the chunk mask") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = windowed_job(Task::kRepaint);
  const auto window_of = [&] { return seconds_of(first_song(renderer, job), kWindowStart, kWindowEnd); };
  const at::Tensor told = window_of();
  job.edit.chunk_mask = ChunkMask::kAuto;
  EXPECT(relative_error(window_of(), told) > 1e-3);
  job.edit.chunk_mask = ChunkMask::kExplicit;
  job.source.audio = recording(25, 61);
  EXPECT(relative_error(window_of(), told) > 1e-3);
  RenderJob whole = source_job(Task::kRepaint), open = whole;
  open.edit.chunk_mask = ChunkMask::kAuto;
  EXPECT(first_song(renderer, whole).equal(first_song(renderer, open)));
}

TEST("cover: source audio and its audio codes give the same song") {
  Renderer renderer = load(write_checkpoints());
  RenderJob cover = source_job(Task::kCover);
  cover.source.audio = recording(kFrames, 60);
  const std::vector<int32_t> codes = renderer.encode_codes(cover.source.audio, Control());
  EXPECT_EQ(codes.size(), size_t{kFrames / 5});
  const at::Tensor song = first_song(renderer, cover);
  for (const Task task : {Task::kText2Music, Task::kCover}) {
    RenderJob coded = plain_job();
    coded.task = task;
    coded.songs[0].codes = codes;
    EXPECT(first_song(renderer, coded).equal(song));
  }
}

TEST("cover: cover strength is the share of steps with cover conditions; the rest use text2music") {
  Renderer renderer = load(write_checkpoints());
  RenderJob cover = source_job(Task::kCover);
  cover.denoise.inference_steps = 8;
  const at::Tensor whole = first_song(renderer, cover);
  cover.songs[0].prompt.plain_text = {1, 2, 9, 8};
  EXPECT(first_song(renderer, cover).equal(whole));
  cover.denoise.cover_strength = 0.7;  // 5 of 8 steps, rounded down
  const at::Tensor some = first_song(renderer, cover);
  cover.denoise.cover_strength = 5.0 / 8;
  EXPECT(first_song(renderer, cover).equal(some));
  cover.denoise.cover_strength = 0.75;
  EXPECT(!first_song(renderer, cover).equal(some));
  cover.denoise.cover_strength = 0.0;
  RenderJob plain = plain_job();
  plain.denoise.inference_steps = 8;
  plain.samples = kSourceFrames * kSamplesPerFrame;
  plain.songs[0].prompt.text = cover.songs[0].prompt.plain_text;
  EXPECT(first_song(renderer, cover).equal(first_song(renderer, plain)));
}

TEST("cover: cover noise strength starts closer to the source, with fewer steps") {
  Renderer renderer = load(write_checkpoints({.is_turbo = true}));
  RenderJob cover = source_job(Task::kCover);
  cover.denoise.inference_steps = 8;
  const auto steps_of = [&](double strength) {
    cover.denoise.cover_noise_strength = strength;
    int64_t steps = 0;
    const Control control(nullptr, [&](const Progress& progress) {
      if (progress.stage == Stage::kDenoise) steps = progress.total;
    });
    renderer.render(cover, control);
    return steps;
  };
  EXPECT_EQ(steps_of(0.0), 8);
  EXPECT_EQ(steps_of(0.4), 3);
  EXPECT_EQ(steps_of(1.0), 1);
}

TEST("reference: affects every item, and also the steps after a cover switches to text2music") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = plain_job({3, 4});
  job.samples = kSourceFrames * kSamplesPerFrame;
  const RenderResult without = renderer.render(job, Control());
  job.reference.audio = recording(20, 70);
  const RenderResult with = renderer.render(job, Control());
  for (size_t i = 0; i < 2; ++i) EXPECT(relative_error(with.songs[i].audio, without.songs[i].audio) > 1e-3);
  EXPECT(renderer.render(job, Control()).songs[1].audio.equal(with.songs[1].audio));
  job.reference.audio = recording(1, 71).slice(1, 0, 100);  // any length is accepted
  EXPECT(relative_error(first_song(renderer, job), with.songs[0].audio) > 1e-3);

  RenderJob cover = source_job(Task::kCover);
  cover.songs[0].prompt.plain_text = {1, 2};
  cover.denoise.cover_strength = 0.0;
  const at::Tensor plain = first_song(renderer, cover);
  cover.reference.audio = recording(20, 70);
  EXPECT(relative_error(first_song(renderer, cover), plain) > 1e-3);
}

TEST("tasks: unloading models between stages changes no sample") {
  const Renderer::Directories directories = write_checkpoints();
  Renderer resident = load(directories), offloaded = load(directories, {.model = false, .text_encoder_and_vae = false});
  RenderJob repaint = windowed_job(Task::kRepaint), cover = source_job(Task::kCover);
  repaint.reference.audio = recording(20, 70);
  cover.songs[0].prompt.plain_text = {1, 2};
  cover.denoise.cover_strength = 0.5;
  for (const RenderJob& job : {repaint, cover}) {
    EXPECT(first_song(offloaded, job).equal(first_song(resident, job)));
  }
  const at::Tensor audio = recording(33, 1);
  EXPECT(offloaded.encode_codes(audio, Control()) == resident.encode_codes(audio, Control()));
}

TEST("tasks: every task renders in bfloat16, deterministically") {
  Renderer renderer = load(write_checkpoints(), {}, {at::kCPU, at::kBFloat16});
  for (const Task task : kSourceTasks) {
    RenderJob job = source_job(task);
    if (task == Task::kRepaint) job.source.window = Window{0.1, 0.2};
    job.songs[0].prompt.plain_text = {1, 2};
    job.denoise.cover_strength = 0.5;
    job.reference.audio = recording(20, 70);
    const at::Tensor song = first_song(renderer, job);
    EXPECT(song.isfinite().all().item<bool>());
    EXPECT(first_song(renderer, job).equal(song));
  }
}

TEST("tasks: encoding recordings reports progress in stage 'conditions' and can be cancelled") {
  Renderer renderer = load(write_checkpoints());
  RenderJob job = source_job(Task::kCover);
  job.reference.audio = recording(20, 70);
  std::vector<double> shares;
  renderer.render(job, Control(nullptr, [&](const Progress& progress) {
                    if (progress.stage == Stage::kConditions)
                      shares.push_back(static_cast<double>(progress.done) / progress.total);
                  }));
  EXPECT_EQ(shares.front(), 0.0);
  EXPECT_EQ(shares.back(), 1.0);
  EXPECT(std::is_sorted(shares.begin(), shares.end()));
  EXPECT(shares.size() > 5);

  std::atomic<bool> cancelled = false;
  const Control cancelling(&cancelled, [&](const Progress& progress) {
    EXPECT(progress.stage == Stage::kConditions);
    if (progress.done > 0) cancelled = true;
  });
  EXPECT(code_thrown([&] { renderer.render(job, cancelling); }) == ErrorCode::kCancelled);
  cancelled = true;
  EXPECT(code_thrown([&] { renderer.encode_codes(job.source.audio, cancelling); }) == ErrorCode::kCancelled);
}

TEST("codes: a recording has one code for every five frames, rounded up") {
  Renderer renderer = load(write_checkpoints());
  const at::Tensor audio = recording(33, 1);
  const std::vector<int32_t> codes = renderer.encode_codes(audio, Control());
  EXPECT_EQ(codes.size(), size_t{7});
  for (const int32_t code : codes) EXPECT(code >= 0 && code < 64000);
  EXPECT(renderer.encode_codes(recording(33, 2), Control()) != codes);
  EXPECT_EQ(renderer.encode_codes(at::zeros_like(audio), Control()).size(), size_t{7});
  EXPECT_THROWS(renderer.encode_codes(recording(1, 1).slice(1, 1), Control()), "less than one latent frame");
  EXPECT_THROWS(renderer.encode_codes(recording(kTinySilence + 1, 1), Control()), "supports at most 200");
}

TEST("latents: recordings are encoded and decoded without rendering; an incomplete last frame is padded") {
  Renderer renderer = load(write_checkpoints());
  const at::Tensor whole = recording(33, 1);
  const at::Tensor latents = renderer.encode_recording(whole, Control());
  EXPECT_EQ(latents.sizes(), (std::vector<int64_t>{33, latents.size(1)}));
  const at::Tensor shorter = renderer.encode_recording(whole.slice(1, 0, whole.size(1) - 1), Control());
  EXPECT_EQ(shorter.size(0), 33);
  const at::Tensor audio = renderer.decode_latents(latents, Control());
  EXPECT_EQ(audio.sizes(), whole.sizes());
  EXPECT_EQ(renderer.codes_of_latents(latents, Control()).size(), size_t{7});
  EXPECT_THROWS(renderer.decode_latents(latents.slice(1, 1), Control()), "latents of this model are");
  EXPECT_THROWS(renderer.codes_of_latents(latents.slice(1, 1), Control()), "latents of this model are");
}

TEST("renderer: encodes conditions of training samples as in rendering") {
  const Renderer::Directories directories = write_checkpoints();
  Renderer renderer = load(directories);
  const AceStep model = AceStep::load(directories.model, kFloat32, Control());
  const at::Tensor latents = renderer.encode_posterior(recording(33, 1), Control()).mean.transpose(1, 2);
  EXPECT((latents.sizes() == at::IntArrayRef{1, 33, kTinyLatent}));
  const at::Tensor plain = renderer.encode_conditions({{1, 2, 3}, {4, 5}}, {}, Control());
  EXPECT((plain.sizes() == at::IntArrayRef{1, 6, kTinyEncoder}));  // lyrics, timbre, text
  const at::Tensor timbre = model.silence_of(kTinyTimbreFrames);
  EXPECT(renderer.encode_conditions({{1, 2, 3}, {4, 5}}, timbre, Control()).equal(plain));
  const at::Tensor other = renderer.encode_conditions({{1, 2, 3}, {4, 5}}, latents, Control());
  EXPECT(!other.select(1, 2).equal(plain.select(1, 2)));
  EXPECT(other.slice(1, 3).equal(plain.slice(1, 3)));
  const at::Tensor silence = model.silence_of(33);
  EXPECT(renderer.silent_context(33, Control()).equal(at::cat({silence, at::ones_like(silence)}, 2)));
}
