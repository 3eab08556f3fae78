// carillon-bench NAME --checkpoints DIR [--device D] [--dtype T] [--quantization Q] [--size N]
//
// Times one part of the engine at the size of real models. Prints `ready` after a warm-up. Then runs one repetition for
// every line on stdin, and prints the time and the processor time of all threads, in seconds. This lets a script alternate
// between this program and another one.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/config.h"
#include "core/diffusion/flow_matching.h"
#include "core/dit/dit.h"
#include "core/runtime/device.h"
#include "core/runtime/error.h"
#include "core/tasks/renderer.h"
#include "core/training/optimizer.h"
#include "core/training/trainable_adapter.h"
#include "core/vae/vae.h"
#include "test/generate_alone.h"

namespace carillon::bench {
namespace {

struct Settings {
  std::string checkpoints;  // directory of acestep-v15-turbo, vae, Qwen3-Embedding-0.6B, acestep-5Hz-lm-0.6B
  Placement placement;
  int64_t size;
};

/// A point in time or a duration.
struct Seconds {
  double wall, processor;
  Seconds operator-(const Seconds& other) const { return {wall - other.wall, processor - other.processor}; }
};

/// Runs one repetition and returns the time it took.
using Repetition = std::function<Seconds()>;

struct Benchmark {
  const char* name;
  int64_t default_size;  // latent frames or audio codes
  /// Loads the model and makes the inputs.
  Repetition (*prepare)(const Settings& settings);
};

/// Token counts of a typical prompt with lyrics.
constexpr int64_t kTextTokens = 100, kLyricTokens = 299, kConditionTokens = 400;

Seconds now() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_PROCESS_CPUTIME_ID)};
}

/// Runs `work` and returns the time it took.
Seconds seconds_of(const std::function<void()>& work) {
  const Seconds start = now();
  work();
  return now() - start;
}

/// `count` token ids below `limit`, the same on every call.
std::vector<int32_t> random_token_ids(int64_t count, int32_t limit) {
  std::mt19937 random(1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(limit)));
  return ids;
}

Repetition prepare_dit_step(const Settings& settings) {
  const c10::InferenceMode inference;
  const std::string directory = settings.checkpoints + "/acestep-v15-turbo";
  const DitConfig config = DitConfig::read(directory);
  const Weights weights = Checkpoint::open(directory).weights(settings.placement);
  const auto options = at::TensorOptions().device(settings.placement.device).dtype(settings.placement.dtype);
  const int64_t channels = config.audio_acoustic_hidden_dim;
  const auto dit = std::make_shared<Dit>(Dit::load(weights.sub("decoder"), config, Control()));
  const auto context = dit->embed_context(at::randn({1, settings.size, 2 * channels}, options));
  const CrossCache cross = dit->make_cross_cache(at::randn({1, kConditionTokens, config.encoder_hidden_size}, options));
  const at::Tensor times = at::full({1}, 0.5, options.dtype(at::kFloat));
  const at::Tensor state = at::randn({1, settings.size, channels}, options);
  return [=] {
    const c10::InferenceMode guard;
    return seconds_of(
        [&] { dit->velocity(state, context, dit->modulate(times).at(0), cross).to(at::kFloat).sum().item(); });
  };
}

Repetition prepare_train_step(const Settings& settings) {
  struct Step {
    DitConfig config;
    Dit dit;
    TrainableAdapter adapter;
    std::vector<at::Tensor> parameters;
    torch::optim::AdamW optimizer;
    explicit Step(const Settings& settings, const Placement& dense)
        : config(DitConfig::read(directory_of(settings))),
          dit(Dit::load(Checkpoint::open(directory_of(settings)).weights(dense).sub("decoder"), config, Control())),
          adapter(dit, LoraDesign{.rank = 64, .alpha = 128, .dropout = 0.1}, 42),
          parameters(tensors_of(adapter.parameters())),
          optimizer(make_adamw(parameters)) {}
    static std::string directory_of(const Settings& settings) { return settings.checkpoints + "/acestep-v15-turbo"; }
  };
  const auto step = std::make_shared<Step>(settings, Placement{settings.placement.device, settings.placement.dtype});
  const DitConfig& config = step->config;
  const auto options = at::TensorOptions().device(settings.placement.device).dtype(settings.placement.dtype);
  const int64_t channels = config.audio_acoustic_hidden_dim;
  const FlowMatchingBatch batch{
      .data = at::randn({1, settings.size, channels}, options.dtype(at::kFloat)),
      .noise = at::randn({1, settings.size, channels}, options.dtype(at::kFloat)),
      .times = at::full({1}, 0.5, options.dtype(at::kFloat)),
      .context = at::randn({1, settings.size, 2 * channels}, options),
      .encoder_states = at::randn({1, kConditionTokens, config.encoder_hidden_size}, options)};
  return [=] {
    return seconds_of([&] {
      step->optimizer.zero_grad();
      step->adapter.set_dropout(1);
      flow_matching_loss(step->dit, batch).backward();
      clip_gradients(step->parameters, 1.0);
      apply_gradients(step->optimizer, 1e-4);
      step->parameters[0].sum().item();  // waits for the device
    });
  };
}

Repetition prepare_vae_decode(const Settings& settings) {
  const auto vae = std::make_shared<Vae>(Vae::load(settings.checkpoints + "/vae", settings.placement, Control()));
  const at::Tensor latents = at::randn({1, vae->config().decoder_input_channels, settings.size});
  return [=] { return seconds_of([&] { vae->decode(latents, Control()); }); };
}

constexpr int64_t kPromptTokens = 400;
constexpr int32_t kFirstCode = 151669, kCodeCount = 64000;  // token ids of the published models' audio codes

/// Vocabulary of `size` tokens with the audio codes of the published models. The text tokens have no bytes, because the
/// generation of audio codes needs none.
Vocabulary codes_vocabulary(int64_t size) {
  return Vocabulary({}, std::vector<int32_t>(static_cast<size_t>(size) + 1, 0), {151645}, kFirstCode, kCodeCount);
}

/// Measures the mean time per audio code, from the first to the last code of a generation. The time for the prompt is
/// excluded.
class CodeTimer {
 public:
  void operator()(const Progress& progress) {
    if (progress.stage != Stage::kCodes) return;
    last_ = now();
    if (reports_++ == 0) first_ = last_;
  }
  Seconds seconds_per_code() const {
    const Seconds all = last_ - first_;
    return {all.wall / (reports_ - 1), all.processor / (reports_ - 1)};
  }

 private:
  int reports_ = 0;
  Seconds first_{}, last_{};
};

/// Prepares the generation of audio codes for `songs` songs in one batch.
Repetition prepare_generation(const Settings& settings, double cfg_scale, uint64_t songs = 1) {
  const std::string directory = settings.checkpoints + "/acestep-5Hz-lm-0.6B";
  const auto model = std::make_shared<CausalLm>(CausalLm::load(directory, settings.placement, Control()));
  const auto vocabulary = std::make_shared<Vocabulary>(codes_vocabulary(model->config().vocab_size));
  SeededJob job;
  job.prompt = job.negative_prompt = random_token_ids(kPromptTokens, kFirstCode);
  job.program = {CodesSegment{settings.size}};
  for (uint64_t seed = 2; seed <= songs; ++seed) job.seeds.push_back(seed);
  job.max_new_tokens = settings.size;
  job.cfg_scale = cfg_scale;
  job.stage = Stage::kCodes;
  return [=] {
    MaskCache masks(*vocabulary, model->placement().device);
    CodeTimer timer;
    generate(*model, *vocabulary, masks, job, kPromptTokens + settings.size + 1,
             Control(nullptr, [&](const Progress& progress) { timer(progress); }));
    return timer.seconds_per_code();
  };
}

Repetition prepare_lm_decode(const Settings& settings) { return prepare_generation(settings, 1.0); }
Repetition prepare_lm_decode_of_two(const Settings& settings) { return prepare_generation(settings, 1.0, 2); }
Repetition prepare_lm_decode_of_eight(const Settings& settings) { return prepare_generation(settings, 1.0, 8); }
Repetition prepare_lm_decode_cfg(const Settings& settings) { return prepare_generation(settings, 2.0); }

/// Computes the logits after a prompt of `size` tokens.
Repetition prepare_lm_prefill(const Settings& settings) {
  const std::string directory = settings.checkpoints + "/acestep-5Hz-lm-0.6B";
  const auto model = std::make_shared<CausalLm>(CausalLm::load(directory, settings.placement, Control()));
  const std::vector<int32_t> ids = random_token_ids(settings.size, kFirstCode);
  const at::Tensor prompt = at::tensor(ids).to(at::kLong).unsqueeze(0);
  return [=] {
    const c10::InferenceMode inference;
    KvCache cache = model->make_cache(1, prompt.size(1));
    return seconds_of([&] { model->logits(model->feed(prompt, {0}, cache)).sum().item(); });
  };
}

Repetition prepare_song(const Settings& settings) {
  constexpr int32_t kTextTokenLimit = 151643;  // special tokens of the published text encoder start here
  const Renderer::Directories directories{settings.checkpoints + "/acestep-v15-turbo", settings.checkpoints + "/vae",
                                          settings.checkpoints + "/Qwen3-Embedding-0.6B"};
  const auto renderer = std::make_shared<Renderer>(directories, settings.placement, Renderer::Residency{}, Control());
  const RenderJob job{.songs = {{.prompt = {.text = random_token_ids(kTextTokens, kTextTokenLimit),
                                            .lyrics = random_token_ids(kLyricTokens, kTextTokenLimit)}}},
                      .samples = settings.size * renderer->info().samples_per_frame};
  return [=] { return seconds_of([&] { renderer->render(job, Control()); }); };
}

constexpr Benchmark kBenchmarks[] = {
    {"dit-step", 750, prepare_dit_step},
    {"train-step", 750, prepare_train_step},
    {"vae-decode", 128, prepare_vae_decode},
    {"lm-decode", 48, prepare_lm_decode},
    {"lm-decode-cfg", 48, prepare_lm_decode_cfg},
    {"lm-decode-2", 48, prepare_lm_decode_of_two},
    {"lm-decode-8", 48, prepare_lm_decode_of_eight},
    {"lm-prefill", kPromptTokens, prepare_lm_prefill},
    {"song", 750, prepare_song},
};

struct Options {
  std::string name, checkpoints, device = "auto", dtype = "auto", quantization = "none", size = "0";
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  const std::pair<const char*, std::string*> known[] = {{"--checkpoints", &options.checkpoints},
                                                        {"--device", &options.device},
                                                        {"--dtype", &options.dtype},
                                                        {"--quantization", &options.quantization},
                                                        {"--size", &options.size}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto option = std::ranges::find_if(known, [&](const auto& each) { return arguments[i] == each.first; });
    if (option == std::end(known)) {
      require(options.name.empty() && !arguments[i].starts_with("--"), "unknown argument '" + arguments[i] + "'");
      options.name = arguments[i];
    } else {
      require(i + 1 < arguments.size(), arguments[i] + " needs a value");
      *option->second = arguments[++i];
    }
  }
  require(!options.checkpoints.empty(), "--checkpoints DIR is missing");
  require(options.size.size() <= 9 && options.size.find_first_not_of("0123456789") == std::string::npos,
          "--size takes a whole number, not '" + options.size + "'");
  return options;
}

const Benchmark& find(const std::string& name) {
  std::string names;
  for (const Benchmark& benchmark : kBenchmarks) {
    if (name == benchmark.name) return benchmark;
    names += std::string(names.empty() ? "" : ", ") + benchmark.name;
  }
  fail(ErrorCode::kBadArgument, "unknown benchmark '" + name + "': use one of " + names);
}

void run(const Options& options) {
  const Benchmark& benchmark = find(options.name);
  const int64_t size = std::stoll(options.size);
  const Repetition repeat =
      benchmark.prepare({options.checkpoints, choose_placement(options.device, options.dtype, options.quantization),
                         size > 0 ? size : benchmark.default_size});
  repeat();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Seconds seconds = repeat();
    std::cout << seconds.wall << ' ' << seconds.processor << std::endl;
  }
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  try {
    carillon::bench::run(carillon::bench::parse({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon-bench: %s\n", error.what());
    return 1;
  }
}
