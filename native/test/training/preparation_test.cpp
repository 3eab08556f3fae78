// Tests that prepared samples of a tiny model match the inputs of inference.
#include "core/training/training_sample.h"

#include <ATen/ATen.h>

#include <atomic>

#include "core/runtime/error.h"
#include "test/tiny_ace_step.h"
#include "test/tiny_qwen3.h"
#include "test/tiny_vae.h"

using namespace carillon;
using namespace carillon::test;
using namespace std::string_literals;

namespace {

constexpr int64_t kSamplesPerFrame = 1920, kSongFrames = 12;

Renderer load(const std::function<void(Tensors&)>& change_model = {}) {
  return Renderer({write_tiny_ace_step({}, change_model), write_tiny_vae(WeightLayout::kWeightNorm, kTinyLatent),
                   write_qwen3(tiny_qwen3_weights(""))},
                  {at::kCPU, at::kFloat}, {}, Control());
}

PreparationJob some_job(uint64_t seed = 1) {
  return {.prompts = {.text = {1, 2, 3}, .lyrics = {4, 5}},
          .audio = 0.1 * at::randn({2, kSongFrames * kSamplesPerFrame + 700}, at::detail::createCPUGenerator(seed)),
          .metadata = {{"caption", "a song"s}, {"bpm", nullptr}}};
}

}  // namespace

TEST("preparation: a sample has the conditions of inference and the latents of its audio") {
  Renderer renderer = load();
  const TrainingSample sample = prepare_sample(renderer, some_job(), Control());
  const auto posterior = renderer.encode_posterior(some_job().audio, Control());
  EXPECT((sample.target_latents.sizes() == at::IntArrayRef{kSongFrames, kTinyLatent}));
  const at::Tensor noise = (sample.target_latents - posterior.mean[0].t()) / posterior.std[0].t();
  EXPECT_NEAR(noise.mean().item<double>(), 0.0, 0.5);
  EXPECT_NEAR(noise.std().item<double>(), 1.0, 0.4);

  const auto condition = renderer.encode_conditions({{1, 2, 3}, {4, 5}}, at::Tensor(), Control());
  EXPECT(sample.encoder_hidden_states.equal(condition[0]));
  EXPECT_EQ(sample.encoder_hidden_states.size(0), 2 + 1 + 3);
  EXPECT(sample.encoder_attention_mask.equal(at::ones({6}, at::kBool)));
  EXPECT(sample.attention_mask.equal(at::ones({kSongFrames}, at::kBool)));
  EXPECT(sample.context_latents.equal(renderer.silent_context(kSongFrames, Control())[0]));
  EXPECT(sample.context_latents.narrow(1, kTinyLatent, kTinyLatent).eq(1).all().item<bool>());
  EXPECT(sample.metadata == some_job().metadata);
}

TEST("preparation: equal audio gives equal files; different audio gets different noise") {
  Renderer renderer = load();
  const std::string directory = fixture_directory();
  const auto write = [&](const std::string& name, const PreparationJob& job) {
    write_sample(directory + name, prepare_sample(renderer, job, Control()));
    const auto file = MappedFile::open(directory + name);
    return std::string(file->data(), file->size());
  };
  const std::string first = write("/a.pt", some_job());
  EXPECT(write("/b.pt", some_job()) == first);
  const auto noise_of = [&](uint64_t seed) {
    const auto posterior = renderer.encode_posterior(some_job(seed).audio, Control());
    return ((prepare_sample(renderer, some_job(seed), Control()).target_latents - posterior.mean[0].t()) /
            posterior.std[0].t());
  };
  EXPECT((noise_of(1) - noise_of(2)).abs().max().item<double>() > 0.1);
}

TEST("preparation: a written sample fits its model") {
  Renderer renderer = load();
  const std::string path = fixture_directory() + "/sample.pt";
  const TrainingSample sample = prepare_sample(renderer, some_job(), Control());
  write_sample(path, sample);
  DitConfig model{};
  model.audio_acoustic_hidden_dim = kTinyLatent;
  model.encoder_hidden_size = kTinyEncoder;
  const TrainingSample read = read_sample(path);
  check_sample(read, model, path);
  EXPECT(read.target_latents.size(0) == kSongFrames && read.encoder_hidden_states.size(0) == 6);
  EXPECT(read.target_latents.equal(sample.target_latents));
}

TEST("preparation: rejects unusable audio and prompts") {
  Renderer renderer = load();
  const auto refused = [&](auto change, const char* fragment) {
    PreparationJob job = some_job();
    change(job);
    EXPECT_THROWS(prepare_sample(renderer, job, Control()), fragment);
  };
  refused([](PreparationJob& job) { job.audio = at::zeros({2, 1900}); }, "shorter than one latent frame");
  refused([](PreparationJob& job) { job.audio = at::zeros({2, (kTinySilence + 1) * kSamplesPerFrame}); },
          "this checkpoint supports at most 200");
  refused([](PreparationJob& job) { job.prompts.text = {50}; }, "token id 50 is outside the vocabulary");
  refused([](PreparationJob& job) { job.audio[0][4000] = std::nan(""); }, "not finite");
  const std::atomic<bool> cancelled = true;
  EXPECT_THROWS(prepare_sample(renderer, some_job(), Control(&cancelled, {})), "");
}
