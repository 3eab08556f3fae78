// What a render job may and may not hold, and what text2music makes its source of.
#include <ATen/ATen.h>

#include "core/tasks/render_job.h"
#include "core/tasks/text2music.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

RenderJob plain_job() {
  RenderJob job;
  job.text_token_ids = {1, 2, 3};
  job.lyric_token_ids = {4, 5};
  job.frames = 150;
  job.seeds = {1, 2};
  return job;
}

}  // namespace

TEST("render: a job whose parts contradict each other is refused") {
  check_render_job(plain_job());
  const auto refused = [](auto change, const char* fragment) {
    RenderJob job = plain_job();
    change(job);
    EXPECT_THROWS(check_render_job(job), fragment);
  };
  refused([](RenderJob& job) { job.seeds.clear(); }, "at least one seed");
  refused([](RenderJob& job) { job.text_token_ids.clear(); }, "text prompt");
  refused([](RenderJob& job) { job.lyric_token_ids.clear(); }, "lyric prompt");
  refused([](RenderJob& job) { job.frames = 0; }, "at least one latent frame");
  refused([](RenderJob& job) { job.audio_codes = {{1, 2}}; }, "1 items and seeds for 2");
  refused([](RenderJob& job) { job.audio_codes = {{1, 2}, {3}}; }, "differ in length");
  refused([](RenderJob& job) { job.audio_codes = {{}, {}}; }, "empty");
  refused([](RenderJob& job) { job.guidance = {.interval_start = 0.9, .interval_end = 0.1}; }, "ends before it starts");
}

TEST("render: text2music starts from silence, at least 128 frames of it") {
  const AceStep model = tiny_ace_step({});
  RenderJob job = plain_job();
  const ContextInputs source = text2music_source(model, job);
  EXPECT(source.source.equal(model.silence_of(150).expand({2, -1, -1})));
  EXPECT(source.chunk_mask.equal(at::ones_like(source.source)));
  EXPECT(!source.is_cover.any().item<bool>());
  job.frames = 40;
  EXPECT_EQ(text2music_source(model, job).source.size(1), 128);
  EXPECT_EQ(text2music_frames(model, job), 40);
  job.frames = kTinySilence + 1;
  EXPECT_THROWS(text2music_source(model, job), "silence table");
}

TEST("render: audio codes set the length and stand in for the source, item by item") {
  const AceStep model = tiny_ace_step({});
  RenderJob job = plain_job();
  job.audio_codes = {std::vector<int32_t>(30, 7), std::vector<int32_t>(30, 63999)};
  EXPECT_EQ(text2music_frames(model, job), 150);
  const ContextInputs source = text2music_source(model, job);
  EXPECT(source.is_cover.all().item<bool>());
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.embed(at::full({1, 30}, 63999, at::kLong)));
  EXPECT(largest_difference(source.hints[1], hints[0]) < 1e-5);
  EXPECT(largest_difference(source.hints[0], source.hints[1]) > 1e-3);
  job.audio_codes = {{7, 8}, {9, 10}};
  EXPECT(text2music_source(model, job).hints[0].narrow(0, 10, 118).equal(model.silence_of(118)[0]));
  job.audio_codes = {{7, 8}, {9, 64000}};
  EXPECT_THROWS(text2music_source(model, job), "audio code 64000 is outside");
}
