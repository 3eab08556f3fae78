// Lyric timestamps of synthetic attention with a known answer, and of whole songs.
#include "core/tasks/lyric_times.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

constexpr int64_t kTokens = 24, kPatches = 160;

/// Token i is sung for four patches, starting at patch 6 * i + 5. Two silent patches follow.
constexpr int64_t first_patch(int64_t token) { return 6 * token + 5; }

/// Attention of a lyric head: high where a token is sung, low noise elsewhere.
at::Tensor following(uint64_t seed) {
  at::Tensor weights = random_tensor({kTokens, kPatches}, seed).abs() * 0.02;
  for (int64_t token = 0; token < kTokens; ++token) {
    weights[token].narrow(0, first_patch(token), 4).fill_(0.7);
  }
  return weights;
}

int64_t largest_error(const std::vector<int64_t>& sung) {
  int64_t error = 0;
  for (int64_t token = 0; token < kTokens; ++token) {
    error = std::max(error, std::abs(sung[static_cast<size_t>(token)] - first_patch(token)));
  }
  return error;
}

/// Checkpoints whose config declares lyric heads. Scaled queries make their attention as sharp as that of trained
/// heads.
Renderer::Directories with_lyric_heads() {
  auto directories = write_checkpoints();
  directories.model = write_tiny_ace_step({}, [](Tensors& tensors) {
    for (const char* layer : {"0", "1"}) {
      tensors.at(std::string("decoder.layers.") + layer + ".cross_attn.q_norm.weight").mul_(30);
    }
  });
  std::string config = tiny_config({});
  config.insert(1, R"("lyric_alignment_layers_config": {"0": [1], "1": [0, 3]}, )");
  write_file(directories.model.path + "/config.json", config);
  return directories;
}

RenderJob sung_job(const std::vector<uint64_t>& seeds = {3}) {
  RenderJob job = plain_job(seeds);
  for (RenderSong& song : job.songs) {
    song.prompt.lyrics = {4, 5, 6, 7, 8, 9};
    song.prompt.timed_lyrics = {.first = 1, .count = 4};
  }
  return job;
}

}  // namespace

TEST("lyric times: places tokens where lyric heads attend to them, despite noisy heads") {
  LyricAlignment alone;
  alone.add_head(following(1));
  EXPECT_EQ(largest_error(alone.first_patches()), 0);

  LyricAlignment several;
  at::Tensor one_token = following(2), one_patch = following(3);
  one_token[7].fill_(0.9);             // every patch attends to this token
  one_patch.select(1, 90).fill_(0.9);  // this patch attends to every token
  for (const at::Tensor& weights : {following(4), one_token, one_patch}) several.add_head(weights);
  EXPECT(largest_error(several.first_patches()) <= 1);
}

TEST("lyric times: ascend even with few patches, and are empty if no weight stands out") {
  for (const int64_t patches : {int64_t{1}, int64_t{5}, kPatches}) {
    LyricAlignment silent, alignment;
    silent.add_head(at::full({kTokens, patches}, 0.1));
    EXPECT(silent.first_patches().empty());
    at::Tensor one = at::full({kTokens, patches}, 0.01);
    one[3][patches / 2] = 1.0;
    alignment.add_head(one);
    const auto sung = alignment.first_patches();
    if (patches == 1) continue;  // no weight of a single patch is salient
    EXPECT_EQ(sung.size(), static_cast<size_t>(kTokens));
    EXPECT_EQ(sung[3], patches / 2);
    EXPECT(std::ranges::is_sorted(sung) && sung.back() < patches);
  }
}

TEST("lyric times: lie within the song, and requesting them does not change its audio") {
  Renderer renderer = load(with_lyric_heads());
  const RenderResult both = renderer.render(sung_job({3, 4}), Control());
  for (const auto& [audio, latents, gain, seconds] : both.songs) {
    EXPECT_EQ(seconds.size(), size_t{4});
    EXPECT(std::ranges::is_sorted(seconds) && seconds.front() >= 0);
    EXPECT(seconds.back() < static_cast<float>(kFrames * kSamplesPerFrame) / kSampleRate);
  }
  EXPECT(renderer.render(sung_job({4}), Control()).songs[0].lyric_seconds == both.songs[1].lyric_seconds);
  RenderJob silent = sung_job({3, 4});
  for (RenderSong& song : silent.songs) song.prompt.timed_lyrics.reset();
  const RenderResult without = renderer.render(silent, Control());
  EXPECT(without.songs[0].lyric_seconds.empty() && without.songs[1].audio.equal(both.songs[1].audio));
}

TEST("lyric times: a model without lyric heads reports none, and tokens beyond the prompt are rejected") {
  Renderer renderer = load(write_checkpoints());
  EXPECT(renderer.render(sung_job(), Control()).songs[0].lyric_seconds.empty());
  for (const LyricSpan span : {LyricSpan{-1, 2}, LyricSpan{0, 0}, LyricSpan{3, 4}}) {
    RenderJob job = sung_job();
    job.songs[0].prompt.timed_lyrics = span;
    EXPECT_THROWS(renderer.render(job, Control()), "outside the lyric prompt");
  }
}
