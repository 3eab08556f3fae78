// Limits of GPU launches, synchronisations and uploads for the built-in model: one token, one evaluation of the DiT and
// one tile of the VAE. Lower a limit when a change needs fewer; never raise it.
#include <ATen/ATen.h>

#include <cstdio>

#include "core/tasks/renderer.h"
#include "test/device/byte_vocabulary.h"
#include "test/device/meter.h"
#include "test/generate_alone.h"
#include "test/test.h"

namespace carillon::test {
namespace {

struct Budget {
  const char* what;
  int64_t launches, synchronisations, bytes;
};

constexpr Budget kFirstToken{"the first token of a guided pair, prompts of different length", 167, 0, 384};
constexpr Budget kToken{"a later token of a guided pair", 1, 0, 8};
constexpr Budget kPatternToken{"a token of a guided pair under a pattern", 12, 1, 84};
constexpr Budget kFirstEvaluation{"the first evaluation of the DiT", 216, 2, 43264};
constexpr Budget kEvaluation{"an evaluation of the DiT after the second", 6, 0, 0};
// The conditions of a single song take 58 launches.
constexpr Budget kEightConditions{"the conditions of eight songs with different prompts", 102, 4, 42240};
// The launches of a tile include one that adds the oscillators.
constexpr Budget kTile{"a tile of the VAE and the copy of the song to the host", 153, 1, 10368000};
constexpr Budget kLoading{"loading a renderer", 223, 18, 0};

const std::string kNano = "models/carillon-nano";
const Placement kOnDevice = choose_placement("cuda:0", "bfloat16");

void expect_within(const Budget& budget, const Totals& used, bool counts_bytes = true) {
  const int64_t bytes = used.bytes_to_device + used.bytes_to_host;
  std::printf("%s: %lld launches, %lld synchronisations, %lld bytes copied\n", budget.what,
              static_cast<long long>(used.launches), static_cast<long long>(used.synchronisations),
              static_cast<long long>(bytes));
  EXPECT(used.launches <= budget.launches);
  EXPECT(used.synchronisations <= budget.synchronisations);
  if (counts_bytes) EXPECT(bytes <= budget.bytes);
}

std::vector<int32_t> token_ids(int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = 100 + i;
  return ids;
}

/// A job for a song of 27 seconds (675 latent frames). The VAE decodes it in more than one tile.
RenderJob job() {
  return {.songs = {{.prompt = {.text = token_ids(20), .lyrics = token_ids(10)}}},
          .samples = 675 * int64_t{1920},
          .denoise = {.inference_steps = 4}};
}

TEST("budget: loading, a DiT evaluation and a VAE tile stay within their limits of launches and synchronisations") {
  const DeviceMeter loading;
  Renderer renderer({kNano, kNano + "/vae", kNano + "/text_encoder"}, kOnDevice, {}, Control());
  expect_within(kLoading, loading.used(), false);
  StageMeter evaluation(Stage::kDenoise), tile(Stage::kDecode);
  const Control denoise = evaluation.control(), decode = tile.control();
  const Control both(nullptr, [&](const Progress& progress) {
    denoise.report(progress.stage, progress.done, progress.total);
    decode.report(progress.stage, progress.done, progress.total);
  });
  renderer.render(job(), both);
  EXPECT(evaluation.reports() > 2);
  EXPECT(tile.reports() > 2);
  expect_within(kFirstEvaluation, evaluation.largest());
  expect_within(kEvaluation, evaluation.median());
  expect_within(kTile, tile.largest());
}

TEST("budget: an evaluation for eight songs launches no more than for one, and their conditions are encoded together") {
  Renderer renderer({kNano, kNano + "/vae", kNano + "/text_encoder"}, kOnDevice, {}, Control());
  RenderJob batch = job();
  batch.samples = 130 * int64_t{1920};
  for (int32_t item = 1; item < 8; ++item) {
    batch.songs.push_back({.prompt = {.text = token_ids(20 + item), .lyrics = token_ids(10)},
                           .seed = static_cast<uint64_t>(1 + item)});
  }
  StageMeter evaluation(Stage::kDenoise), conditions(Stage::kConditions);
  const Control denoise = evaluation.control(), encode = conditions.control();
  const Control both(nullptr, [&](const Progress& progress) {
    denoise.report(progress.stage, progress.done, progress.total);
    encode.report(progress.stage, progress.done, progress.total);
  });
  renderer.render(batch, both);
  expect_within(kEvaluation, evaluation.median());
  expect_within(kEightConditions, conditions.largest());
}

/// Generates `segment` with the embedded language model and guidance, and counts the device operations of each token.
StageMeter metered(Segment segment) {
  const CausalLm model = CausalLm::load(kNano + "/lm", kOnDevice, Control());
  const Vocabulary vocabulary = byte_vocabulary(model.config().vocab_size);
  SeededJob job;
  job.prompt = token_ids(60);
  job.negative_prompt = token_ids(40);
  job.program = {std::move(segment)};
  job.max_new_tokens = 40;
  job.cfg_scale = 2.0;
  job.stage = Stage::kCodes;
  MaskCache masks(vocabulary, model.placement().device);
  StageMeter token(Stage::kCodes);
  generate(model, vocabulary, masks, job, 512, token.control());
  EXPECT(token.reports() > 2);
  return token;
}

TEST("budget: an audio code stays within its limits of launches and synchronisations") {
  const StageMeter code = metered(CodesSegment{40});
  expect_within(kFirstToken, code.largest());
  expect_within(kToken, code.median());
}

TEST("budget: a metadata token stays within its limits of launches and synchronisations") {
  expect_within(kPatternToken, metered(PatternSegment{"([a-m][n-z]){16}\n", false, 40}).median());
}

}  // namespace
}  // namespace carillon::test
