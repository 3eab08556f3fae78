// Training of the model's own weights: every stage learns, goes on where it was cut, and ends in a checkpoint.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/dit/ace_step.h"
#include "core/tasks/renderer.h"
#include "core/vae/vae.h"
#include "pretraining/autoencoder.h"
#include "pretraining/beats.h"
#include "pretraining/export.h"
#include "pretraining/initial_weights.h"
#include "pretraining/lapped_transform.h"
#include "pretraining/muon.h"
#include "pretraining/run.h"
#include "pretraining/structure.h"
#include "pretraining/structure_stage.h"
#include "pretraining/train_state.h"
#include "test/tiny_pretraining.h"

using namespace carillon;
using namespace carillon::pretraining;
using namespace carillon::test;

namespace {

void silent(const std::string&) {}

void run_stage(Options options, const std::string& stage, int64_t steps) {
  options.stage = stage;
  options.steps = steps;
  run(options, silent);
}

/// Everything that `stage` needs, barely trained.
Options prepared_for(const std::string& stage) {
  const Options options = tiny_options();
  if (stage == "vae" || stage == "words") return options;
  run_stage(options, "vae", 2);
  if (stage == "structure") return options;
  run_stage(options, "structure", 2);
  run_stage(options, "latents", 0);
  if (stage != "tokenizer") run_stage(options, "tokenizer", 2);
  return options;
}

struct Learner {
  std::shared_ptr<Parameters> parameters;
  std::unique_ptr<TrainingStage> stage;
  Weights weights;
};

Learner learner(Options options, const std::string& name) {
  options.stage = name;
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(options.seed));
  auto stage = make_stage(options, *parameters, at::kCPU);
  return {parameters, std::move(stage), Checkpoint::of(parameters).weights({at::kCPU, at::kFloat})};
}

/// Leaves that no gradient reaches in `batches` batches of every kind of item, one name a line.
std::string unreached(const std::string& name, int64_t batches) {
  const Learner model = learner(prepared_for(name), name);
  for (int64_t step = 0; step < batches; ++step) {
    Draw draw(1, step);
    model.stage->loss(model.weights, draw).total.backward();
  }
  std::string names;
  for (const auto& [leaf, tensor] : model.parameters->leaves()) {
    if (!tensor.grad().defined() || !tensor.grad().any().item<bool>()) names += leaf + "\n";
  }
  return names;
}

/// Losses of the same batch before and after `steps` steps on it.
std::pair<double, double> overfit(const std::string& name, int64_t steps, double learning_rate) {
  const Learner model = learner(prepared_for(name), name);
  TrainState state(model.parameters);
  double first = 0, last = 0;
  for (int64_t step = 0; step < steps; ++step) {
    Draw draw(1, 0);
    const at::Tensor loss = model.stage->loss(model.weights, draw).total;
    last = loss.item<double>();
    if (step == 0) first = last;
    loss.backward();
    state.update(learning_rate, 0);
  }
  return {first, last};
}

/// As many latent channels as it takes to have all kinds.
VaeConfig structured_config() {
  return {.sampling_rate = 48000,
          .audio_channels = 2,
          .encoder_hidden_size = 128,
          .decoder_channels = 8,
          .decoder_input_channels = 64,
          .downsampling_ratios = {10, 8, 6, 4},
          .channel_multiples = {1, 1, 1, 1}};
}

}  // namespace

TEST("pretraining: gradients reach every weight of the VAE but the silent units at the sampling rate") {
  std::istringstream names(unreached("vae", 2));
  int64_t silent = 0;
  for (std::string name; std::getline(names, name); ++silent) {
    EXPECT(name.rfind("encoder.block.0.res_unit", 0) == 0 || name.rfind("decoder.block.3.res_unit", 0) == 0);
  }
  EXPECT_EQ(silent, 2 * 3 * 8);
}

TEST("pretraining: an autoencoder that has learnt nothing gives back low tones") {
  VaeConfig config{.sampling_rate = 48000,
                   .audio_channels = 2,
                   .encoder_hidden_size = 32,
                   .decoder_channels = 24,
                   .decoder_input_channels = 16,
                   .downsampling_ratios = {10, 8, 6, 4},
                   .channel_multiples = {1, 1, 1, 1}};
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  begin_as_lapped_transform(*parameters, config);
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const at::NoGradGuard no_grad;
  const auto kept = [&](double hertz) {  // the share of the energy in the middle of a tone that comes back as it was
    const at::Tensor tone = 0.3 * (at::arange(48000, at::kDouble) * (2 * M_PI * hertz / 48000)).sin().to(at::kFloat);
    const at::Tensor audio = tone.expand({1, 2, -1}).contiguous();
    const at::Tensor made = decode(weights, config, encode(weights, config, audio).mean);
    const auto middle = [](const at::Tensor& whole) { return whole.narrow(2, 16000, 16000); };
    return 1 - ((middle(made) - middle(audio)).square().mean() / middle(audio).square().mean()).item<double>();
  };
  EXPECT(kept(110) > 0.9);
  EXPECT(kept(700) < 0.3);  // beyond 14 bins of 12.5 Hz
}

TEST("pretraining: the structure is learnt by the encoder's last block alone") {
  std::istringstream names(unreached("structure", 2));
  int64_t frozen_in_last_block = 0;
  for (std::string name; std::getline(names, name);) {
    EXPECT(name != "encoder.conv2.weight");
    if (name.rfind("encoder.block.3.", 0) == 0) ++frozen_in_last_block;
  }
  EXPECT_EQ(frozen_in_last_block, 2);  // the snake that the blocks before end with
}

TEST("pretraining: structure names the loudest band and pitch class, and goes without a track") {
  const Structure structure(structured_config(), at::kCPU);
  constexpr int64_t kFrames = 50, kBands = 4;
  const at::Tensor time = at::arange(kFrames * 1920, at::kDouble) / 48000;
  const auto tone = [&](double hertz) {
    return (0.2 * (time * (2 * M_PI * hertz)).sin()).to(at::kFloat).expand({1, 2, -1}).contiguous();
  };
  const auto of = [&](const at::Tensor& audio) { return structure(audio)[0].slice(1, 5, kFrames - 5).mean(1); };
  EXPECT_EQ(of(tone(80)).narrow(0, 0, kBands).argmax().item<int64_t>(), 0);
  EXPECT_EQ(of(tone(3000)).narrow(0, 0, kBands).argmax().item<int64_t>(), 2);
  EXPECT_EQ(of(tone(220)).narrow(0, kBands, 12).argmax().item<int64_t>(), 0);   // A
  EXPECT_EQ(of(tone(392)).narrow(0, kBands, 12).argmax().item<int64_t>(), 10);  // G
  const auto latents = [&](const at::Tensor& audio) {                           // other channels silent
    return at::cat({at::zeros({kFrames, 48}), structure(audio)[0].t()}, 1).slice(0, 5, kFrames - 5);
  };
  const at::Tensor rest = without(latents(tone(220) + tone(392)), latents(tone(392)), at::zeros({kFrames - 10, 64}));
  const at::Tensor pitches = rest.narrow(1, 48 + kBands, 12).mean(0);
  EXPECT_EQ(pitches.argmax().item<int64_t>(), 0);
  EXPECT((pitches[0] - of(tone(220))[kBands]).abs().item<double>() < 0.3);
  EXPECT((pitches[0] - pitches[10]).item<double>() > 1);
}

TEST("pretraining: pitch classes hardly change where everything gets louder") {
  const Structure structure(structured_config(), at::kCPU);
  at::manual_seed(1);
  const at::Tensor hiss = at::randn({50 * 1920});
  const auto middle = [&](double gain) {
    return structure((gain * hiss).expand({1, 2, -1}).contiguous())[0].select(1, 25);
  };
  const at::Tensor change = middle(0.2) - middle(0.02);
  EXPECT(change.narrow(0, 0, 4).min().item<double>() > 4);
  EXPECT(change.narrow(0, 4, 12).max().item<double>() < 2);
}

TEST("pretraining: facts are read back from their numbers") {
  const std::vector<std::string> genres = {"folk", "jazz", "rock"};
  for (const double bpm : {60.0, 87.0, 123.0, 180.0}) {
    const Facts facts = facts_of("jazz", bpm, "Bb minor", "6");
    const Facts read = from_numbers(as_numbers(facts, genres), genres);
    EXPECT(std::abs(read.bpm / bpm - 1) < 0.005);
    EXPECT_EQ(read.genre, "jazz");
    EXPECT_EQ(read.tonic, 10);
    EXPECT(read.is_minor);
    EXPECT_EQ(read.metre, 6);
  }
  EXPECT_THROWS(facts_of("jazz", 120, "H major", "4"), "'H major' is no key");
  EXPECT_THROWS(facts_of("jazz", 120, "A dorian", "4"), "'A dorian' is no key");
  EXPECT_THROWS(facts_of("jazz", 120, "A minor", "5"), "'5' is no metre");
  EXPECT_THROWS(as_numbers(facts_of("polka", 120, "A minor", "2"), genres), "'polka' is no genre of the data set");
}

TEST("pretraining: a clock tells its tempo, and its bars have the metre's beats") {
  const Facts facts = facts_of("jazz", 100, "A minor", "3");  // 15 frames a beat
  const at::Tensor clock = beats(facts, /*first_frame=*/30, /*frames=*/90, /*channels=*/4);
  EXPECT(std::abs(tempo_of(clock) - 100) < 0.1);
  const auto differs = [&](int64_t frames, int64_t channel) {
    return (clock.slice(0, frames) - clock.slice(0, 0, 90 - frames)).select(1, channel).abs().max().item<double>();
  };
  EXPECT(differs(15, 0) < 1e-3);
  EXPECT(differs(45, 2) < 1e-3);
  EXPECT(differs(15, 2) > 1);
  EXPECT(at::allclose(clock.slice(0, 15), beats(facts, 45, 75, 4)));
}

TEST("pretraining: nothing in the decoder reads the clock") {
  EXPECT_EQ(LatentParts::of(64).beats, 4);
  EXPECT_EQ(LatentParts::of(64).first_of_structure(), 48);
  Parameters parameters(at::kCPU, initial_weights(1));
  VaeConfig config = structured_config();
  TrainState state(std::make_shared<Parameters>(at::kCPU, initial_weights(1)));
  state.parameters()->leaf("decoder.conv1.weight", {8, 64, 7});
  const std::string path = fixture_directory() + "/vae.safetensors";
  state.save(path);
  StructureStage::begin(parameters, config, path);
  const at::Tensor weight = parameters.leaves().at("decoder.conv1.weight");
  EXPECT(!weight.narrow(1, 44, 20).any().item<bool>());
  EXPECT(weight.narrow(1, 0, 44).any().item<bool>());
}

TEST("pretraining: gradients reach every weight of the audio tokenizer") { EXPECT_EQ(unreached("tokenizer", 2), ""); }

TEST("pretraining: gradients reach every weight of DiT, condition encoder and text encoder") {
  // This family pools the first frame and keeps the token only in its files.
  EXPECT_EQ(unreached("dit", 16), "encoder.timbre_encoder.special_token\n");
}

TEST("pretraining: gradients reach every weight of a text encoder without sound") {
  EXPECT_EQ(unreached("words", 2), "");
}

TEST("pretraining: a DiT begins with the text encoder that has read words") {
  Options options = prepared_for("dit");
  run_stage(options, "words", 2);
  const auto learnt = TrainState::read_average(options.work + "/words.safetensors");
  run_stage(options, "dit", 0);
  const auto begun = TrainState::read_average(options.work + "/dit.safetensors");
  for (const auto& [name, tensor] : learnt) EXPECT(at::equal(begun.at(name), tensor));
}

TEST("pretraining: gradients reach every weight of the language model") { EXPECT_EQ(unreached("lm", 2), ""); }

TEST("pretraining: every stage learns a batch that it sees again and again") {
  const auto expect_learnt = [](const char* stage, double rate, double share) {
    const auto [first, last] = overfit(stage, 20, rate);
    if (!(last < share * first)) {
      fail_at(__FILE__, __LINE__, std::string(stage) + ": " + std::to_string(first) + " to " + std::to_string(last));
    }
  };
  expect_learnt("vae", 1e-3, 0.97);  // it begins with low tones, which is most of what there is
  expect_learnt("structure", 1e-2, 0.9);
  expect_learnt("tokenizer", 3e-3, 0.9);
  expect_learnt("words", 1e-2, 0.9);
  expect_learnt("dit", 3e-3, 0.9);
  expect_learnt("guidance", 3e-3, 0.9);
  expect_learnt("lm", 1e-2, 0.5);
}

TEST("pretraining: a DiT that has learnt nothing looks at what comes before and after") {
  const Options options = prepared_for("dit");
  const Learner model = learner(options, "dit");
  Draw draw(1, 0);
  model.stage->loss(model.weights, draw);  // makes the leaves
  const DitConfig config = DitConfig::read(options.model);
  const at::NoGradGuard no_grad;
  const Dit dit = Dit::load(model.weights.sub("decoder"), config, Control());
  constexpr int64_t kPatches = 24, kFrames = 2, kItems = 32;
  at::manual_seed(1);
  const at::Tensor context = at::randn({kItems, kFrames * kPatches, 8}), conditions = at::randn({kItems, 3, 16});
  at::Tensor state = at::randn({kItems, kFrames * kPatches, 4});
  const auto velocity = [&] {
    return dit.velocity(state, dit.embed_context(context), dit.modulate(at::full({kItems}, 0.5)),
                        dit.attend_to(conditions));
  };
  const at::Tensor before = velocity();
  state.narrow(1, kFrames * kPatches / 2, kFrames).normal_();
  const at::Tensor change = (velocity() - before).square().reshape({kItems, kPatches, -1}).mean({0, 2});
  const auto at_distance = [&](int64_t distance) {
    return (change[kPatches / 2 - distance] + change[kPatches / 2 + distance]).item<double>();
  };
  EXPECT(at_distance(1) > 3 * at_distance(4));
  EXPECT(at_distance(1) > 3 * at_distance(9));
}

TEST("pretraining: Muon's step has singular values that are nearly alike, whatever the momentum's are") {
  const at::Tensor scales = at::logspace(-1, 1, 12);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 40}, std::vector<int64_t>{40, 12}}) {
    const at::Tensor momentum = shape[0] == 12 ? scales.unsqueeze(1) * at::randn(shape) : at::randn(shape) * scales;
    const at::Tensor values = at::linalg_svdvals(muon_step(momentum, at::kFloat) / (0.2 * std::sqrt(40.0)));
    EXPECT(values.min().item<double>() > 0.1);
    EXPECT(values.max().item<double>() < 1.3);
  }
}

TEST("pretraining: a stage that was cut goes on as one that was not") {
  const auto state_after = [](std::initializer_list<int64_t> runs) {
    const Options options = prepared_for("dit");
    for (const int64_t steps : runs) run_stage(options, "dit", steps);
    return Safetensors::open(state_path(options.work, "dit"));
  };
  const Safetensors whole = state_after({4}), cut = state_after({1, 3, 4});
  EXPECT_EQ(whole.names().size(), cut.names().size());
  for (const std::string& name : whole.names()) {
    if (!at::equal(whole.tensor(name), cut.tensor(name))) fail_at(__FILE__, __LINE__, name + " differs");
  }
}

TEST("pretraining: a gradient that is not finite changes no weight") {
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const at::Tensor leaf = parameters->leaf("layer.weight", {2, 2}), before = leaf.detach().clone();
  TrainState state(parameters);
  (leaf.sum() * std::numeric_limits<double>::infinity()).backward();
  EXPECT(!state.update(0.1, 0).applied);
  EXPECT(at::equal(leaf.detach(), before));
  EXPECT_EQ(state.step(), 1);
}

TEST("pretraining: weights come back as they were, and compute what they did") {
  const Options options = prepared_for("dit");
  const Learner model = learner(options, "dit");
  Draw draw(1, 0);
  model.stage->loss(model.weights, draw);  // makes the leaves
  const DitConfig config = DitConfig::read(options.model);
  const at::Tensor state = at::randn({1, 12, 4}), context = at::randn({1, 12, 8}), conditions = at::randn({1, 3, 16});
  const auto velocity = [&](const Weights& weights) {
    const at::NoGradGuard no_grad;
    const Dit dit = Dit::load(weights.sub("decoder"), config, Control());
    return dit.velocity(state, dit.embed_context(context), dit.modulate(at::full({1}, 0.5)), dit.attend_to(conditions));
  };
  std::map<std::string, at::Tensor> tensors, halves;
  for (const auto& [name, leaf] : model.parameters->leaves()) {
    tensors[name] = leaf.detach();
    halves[name] = leaf.detach().to(at::kBFloat16);
  }
  const auto exported = [&](const std::map<std::string, at::Tensor>& written) {
    const std::string directory = fixture_directory();
    save_safetensors(directory + "/model.safetensors", written);
    return Checkpoint::open(directory).weights({at::kCPU, at::kFloat});
  };
  const at::Tensor trained = velocity(model.weights);
  const auto error = [&](const Weights& weights) {
    return (velocity(weights) - trained).abs().max().item<double>() / trained.abs().max().item<double>();
  };
  const Weights read = exported(tensors);
  for (const auto& [name, tensor] : tensors) EXPECT(at::equal(read.get(name, tensor.sizes()), tensor));
  EXPECT(error(read) < 1e-5);  // not 0: products round by where their operands lie in memory
  EXPECT(error(exported(halves)) < 0.05);
}

TEST("pretraining: all stages together make a checkpoint that renders") {
  Options options = prepared_for("dit");
  run_stage(options, "dit", 2);
  run_stage(options, "guidance", 2);
  run_stage(options, "lm", 2);
  options.out = options.work + "/out";
  run_stage(options, "export", 0);
  Renderer renderer({options.out, options.out + "/vae", options.out + "/text_encoder"}, {at::kCPU, at::kFloat}, {},
                    Control());
  EXPECT(renderer.info().unused_tensors.empty());
  EXPECT_EQ(renderer.info().max_frames, 15000);
  RenderJob job;
  job.text_token_ids = {1, 5, 6};
  job.lyric_token_ids = {1, 7};
  job.frames = 150;
  job.seeds = {1};
  const RenderResult result = renderer.render(job, Control());
  EXPECT_EQ(result.audio[0].size(1), 150 * 1920);
  EXPECT(result.audio[0].any().item<bool>());
}

TEST("pretraining: a stage without those before it says what is missing") {
  Options options = tiny_options();
  EXPECT_THROWS(run_stage(options, "dit", 1), "run stage 'tokenizer' first");
  EXPECT_THROWS(run_stage(options, "guidance", 1), "run stage 'dit' first");
  write_file(options.data + "/words.jsonl",
             R"({"id": "piece9", "split": "train", "genre": "jazz", "bpm": 120, "keyScale": "H major", )"
             R"("timeSignature": "4", "mix": "", "stems": {}})");
  EXPECT_THROWS(run_stage(options, "words", 1), "piece9: 'H major' is no key");
  EXPECT_THROWS(run_stage(options, "mastering", 1), "unknown stage 'mastering'");
  EXPECT_THROWS(parse_options({"vae", "--batch", "many"}), "--batch takes a number");
  EXPECT_THROWS(parse_options({"vae", "--epochs", "3"}), "unknown argument '--epochs'");
}
