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
#include "core/vae/networks.h"
#include "core/vae/vae.h"
#include "pretraining/beats.h"
#include "pretraining/encoder_start.h"
#include "pretraining/export.h"
#include "pretraining/initial_weights.h"
#include "pretraining/lapped_transform.h"
#include "pretraining/latent_space.h"
#include "pretraining/latents.h"
#include "pretraining/muon.h"
#include "pretraining/reconstruction.h"
#include "pretraining/run.h"
#include "pretraining/test/tiny_pretraining.h"
#include "pretraining/train_state.h"
#include "pretraining/wav.h"
#include "test/tiny_renderer.h"

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
  if (stage == "encoder" || stage == "words") return options;
  run_stage(options, "latents", 0);
  if (stage != "decoder" && stage != "tokenizer") run_stage(options, "tokenizer", 2);
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

VaeConfig config_of(int64_t latent_channels, int64_t decoder_channels) {
  return {.sampling_rate = 48000,
          .audio_channels = 2,
          .encoder_hidden_size = 2 * latent_channels,
          .decoder_channels = decoder_channels,
          .decoder_input_channels = latent_channels,
          .downsampling_ratios = {10, 8, 6, 4},
          .channel_multiples = {1, 1, 1, 1}};
}

/// `frames` latent frames of a tone on both channels, [1, 2, samples].
at::Tensor tone(double hertz, int64_t frames, double amplitude = 0.2) {
  const at::Tensor time = at::arange(frames * 1920, at::kDouble) / 48000;
  return (amplitude * (time * (2 * M_PI * hertz)).sin()).to(at::kFloat).expand({1, 2, -1}).contiguous();
}

at::Tensor hiss(int64_t items, int64_t frames) {
  at::manual_seed(1);
  return 0.1 * at::randn({items, 2, frames * 1920});
}

LatentSpace tiny_space(const VaeConfig& config) {
  return LatentSpace::measure(config, Pieces::read(tiny_options().data).train);
}

}  // namespace

TEST("pretraining: gradients reach every weight of the encoder but those of the blocks that stay a transform") {
  std::istringstream names(unreached("encoder", 2));
  for (std::string name; std::getline(names, name);) {
    const bool is_exact = name.rfind("encoder.conv1.", 0) == 0 || name.rfind("encoder.block.0.", 0) == 0 ||
                          name.rfind("encoder.block.1.", 0) == 0;
    if (!is_exact) fail_at(__FILE__, __LINE__, name + " does not learn");
  }
}

TEST("pretraining: gradients reach every weight of the decoder but the silent units at the sampling rate") {
  std::istringstream names(unreached("decoder", 4));
  int64_t silent = 0;
  for (std::string name; std::getline(names, name); ++silent) EXPECT(name.rfind("decoder.block.3.res_unit", 0) == 0);
  EXPECT_EQ(silent, 3 * 8);
}

TEST("pretraining: an autoencoder that has learnt nothing gives back low tones") {
  const VaeConfig config = config_of(40, 24);
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const LatentSpace space = tiny_space(config);
  begin_encoder(*parameters, config, space, hiss(4, 50));
  begin_decoder(*parameters, config, space.wave_deviations());
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const at::NoGradGuard no_grad;
  SignalPool pool;
  const Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config, /*time_major=*/false);
  const auto kept = [&](double hertz) {  // the share of the energy in the middle of a tone that comes back as it was
    const at::Tensor audio = tone(hertz, 25);
    const at::Tensor latents = encoder.encode(audio, pool).narrow(1, 0, 40);
    latents.slice(1, LatentParts::of(config).waves).zero_();
    const at::Tensor made = decode(weights, config, latents);
    const auto middle = [](const at::Tensor& whole) { return whole.narrow(2, 16000, 16000); };
    return 1 - ((middle(made) - middle(audio)).square().mean() / middle(audio).square().mean()).item<double>();
  };
  EXPECT(kept(110) > 0.9);
  EXPECT(kept(700) < 0.3);  // beyond 18 bins of 12.5 Hz
}

TEST("pretraining: the encoder's first blocks are the transform that its training begins with") {
  const VaeConfig config = config_of(48, 8);
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const LatentSpace space = tiny_space(config);
  const at::Tensor audio = hiss(2, 12);
  begin_encoder(*parameters, config, space, audio);
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config, /*time_major=*/false);
  const at::NoGradGuard no_grad;
  SignalPool pool;
  const int64_t count = exact_bands(config);
  const at::Tensor bands = lapped_transform(audio, lapped_filters({10, 8}, count), {10, 8});
  const at::Tensor equal = at::constant_pad_nd(bands / space.band_deviations().view({-1, 1}), {0, 0, 0, 96 - count});
  const at::Tensor from_bands = encoder.encode_from(kExactBlocks, equal, pool);
  const auto inner = [](const at::Tensor& all) { return all.slice(2, 3, 9); };  // beyond the edges filters differ
  EXPECT(at::allclose(inner(encoder.encode(audio, pool)), inner(from_bands), 1e-3, 1e-4));
}

TEST("pretraining: an encoder that has learnt nothing says the waves, and most of the structure") {
  const VaeConfig config = config_of(48, 8);
  const LatentParts parts = LatentParts::of(config);
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const LatentSpace space = tiny_space(config);
  const at::Tensor gains = at::logspace(-1.5, 0.5, 48).view({48, 1, 1});
  const at::Tensor audio = (hiss(48, 25) * gains).index_select(0, at::randperm(48));
  begin_encoder(*parameters, config, space, audio.narrow(0, 0, 32));
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const Oobleck encoder = Oobleck::load_encoder(weights.sub("encoder"), config, /*time_major=*/false);
  const at::NoGradGuard no_grad;
  SignalPool pool;
  const auto inner = [](const at::Tensor& all, int64_t first, int64_t count) {
    return all.narrow(1, first, count).slice(2, 3, 22);
  };
  const at::Tensor held_out = audio.narrow(0, 32, 16), said = encoder.encode(held_out, pool), wanted = space(held_out);
  const auto error = [&](int64_t first, int64_t count) {
    const at::Tensor difference = inner(said, first, count) - inner(wanted, first, count);
    return (difference.square().mean() / inner(wanted, first, count).var()).item<double>();
  };
  EXPECT(error(0, parts.waves) < 1e-3);
  EXPECT(error(parts.first_of_structure(), parts.structure()) < 0.3);
}

TEST("pretraining: an encoder of other than four blocks cannot begin") {
  VaeConfig config = config_of(48, 8);
  const LatentSpace space = tiny_space(config);
  config.downsampling_ratios.push_back(1);
  config.channel_multiples.push_back(1);
  Parameters parameters(at::kCPU, initial_weights(1));
  EXPECT_THROWS(begin_encoder(parameters, config, space, hiss(2, 12)), "begins with four blocks, not 5");
}

TEST("pretraining: a latent space belongs to its autoencoder") {
  const std::string path = fixture_directory() + "/space.safetensors";
  tiny_space(config_of(48, 8)).save(path);
  EXPECT_EQ(LatentSpace::load(config_of(48, 8), path).wave_deviations().size(0), 21);
  EXPECT_THROWS(LatentSpace::load(config_of(80, 8), path), "measured for another autoencoder");
}

TEST("pretraining: the spectra of timbre say which band sounds, and in which quarter of a frame") {
  const LogMel log_mel(config_of(80, 8), at::kCPU);
  const auto spectra = [&](const at::Tensor& audio) { return log_mel(audio.mean(1))[0].view({LogMel::kBands, 4, -1}); };
  const auto loudest_band = [&](double hertz) {
    return spectra(tone(hertz, 10)).select(1, 0).select(1, 5).argmax().item<int64_t>();
  };
  EXPECT(loudest_band(300) < loudest_band(330));
  EXPECT(loudest_band(2000) < loudest_band(2200));
  EXPECT_EQ(loudest_band(40), loudest_band(60));  // both below the first
  const auto loudest = [&](double amplitude) { return spectra(tone(1000, 10, amplitude)).max().item<double>(); };
  EXPECT(std::abs(loudest(0.2) - loudest(0.1) - std::log(2)) < 0.01);
  at::Tensor click = at::zeros({1, 2, 10 * 1920});
  click.slice(2, 4 * 1920 + 1200, 4 * 1920 + 1202).fill_(0.5);  // the middle of the fifth frame's third quarter
  EXPECT_EQ(spectra(click).sum(0).select(1, 4).argmax().item<int64_t>(), 2);
}

TEST("pretraining: timbre is what spectra vary in most, the most first and all of useful size") {
  at::manual_seed(1);
  const auto [shapes, ignored] = at::linalg_qr(at::randn({LogMel::kRows, 3}));
  const at::Tensor deviations = at::tensor({90.f, 40.f, 10.f}), amounts = at::randn({4000, 3}) * deviations;
  const at::Tensor spectra = at::matmul(amounts, shapes.t()) + at::randn({LogMel::kRows}) - 4;
  const at::Tensor timbre = Timbre::learn(spectra, 3)(spectra.t().unsqueeze(0))[0];
  EXPECT(at::allclose(timbre.std(1), at::tensor({3.f, 2.f, 1.f}), 0.05));
  const at::Tensor correlation = at::corrcoef(at::cat({timbre, amounts.t()})).narrow(0, 0, 3).narrow(1, 3, 3).abs();
  EXPECT(at::allclose(correlation, at::eye(3), 0, 0.05));
}

TEST("pretraining: pitch classes name what sounds, and hardly change where everything gets louder") {
  const PitchClasses pitch_classes(config_of(80, 8), at::kCPU);
  const auto of = [&](const at::Tensor& audio) { return pitch_classes(audio.mean(1))[0].select(1, 25); };
  EXPECT_EQ(of(tone(220, 50)).argmax().item<int64_t>(), 0);   // A
  EXPECT_EQ(of(tone(392, 50)).argmax().item<int64_t>(), 10);  // G
  at::manual_seed(1);
  const at::Tensor hiss = at::randn({1, 1, 50 * 1920}).expand({1, 2, -1});
  EXPECT((of(0.2 * hiss) - of(0.02 * hiss)).max().item<double>() < 2);
}

TEST("pretraining: latents of a mix without a track are those of what is left of its sound") {
  const Options options = tiny_options();
  run_stage(options, "latents", 0);
  const Piece piece = Pieces::read(options.data).train.front();
  const Latents latents(options.work + "/latents", {piece});
  const VaeConfig config = VaeConfig::read(options.model + "/vae");
  const LatentSpace space = LatentSpace::load(config, options.work + "/space.safetensors");
  const auto audio = [](const std::string& path) { return Wav::open(path).read(0, 50 * 1920).unsqueeze(0); };
  const at::Tensor rest = space(audio(piece.mix) - audio(piece.stems.at("bass")))[0].t();
  EXPECT(at::allclose(latents.of(piece, rest_without("bass")), rest, 0.02, 0.02));
  EXPECT(!at::allclose(latents.of(piece, kMix), rest, 0.02, 0.02));
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
  const LatentParts parts = LatentParts::of(80);
  EXPECT_EQ(parts.waves, 36);
  EXPECT_EQ(parts.beats, 4);
  EXPECT_EQ(parts.first_of_structure(), 40);
  EXPECT_EQ(parts.structure(), 28 + kPitchClasses);
  Parameters parameters(at::kCPU, initial_weights(1));
  begin_decoder(parameters, config_of(80, 8), at::ones({parts.waves}));
  const at::Tensor weight = parameters.leaves().at("decoder.conv1.weight");
  EXPECT(!weight.narrow(1, parts.waves, parts.beats).any().item<bool>());
  EXPECT(weight.narrow(1, 0, parts.waves).any().item<bool>());
  EXPECT(weight.narrow(1, parts.first_of_structure(), parts.structure()).any().item<bool>());
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
  expect_learnt("encoder", 1e-4, 0.97);
  expect_learnt("decoder", 1e-3, 0.97);  // it begins with low tones, which is most of what there is
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
  run_stage(options, "encoder", 2);
  run_stage(options, "decoder", 2);
  run_stage(options, "dit", 2);
  run_stage(options, "guidance", 2);
  run_stage(options, "lm", 2);
  options.out = options.work + "/out";
  run_stage(options, "export", 0);
  Renderer renderer({options.out, options.out + "/vae", options.out + "/text_encoder"}, {at::kCPU, at::kFloat}, {},
                    Control());
  EXPECT(renderer.info().unused_tensors.empty());
  EXPECT_EQ(renderer.info().max_frames, 15000);
  RenderJob job = plain_job({1});
  job.prompts = {.text = {1, 5, 6}, .lyrics = {1, 7}, .plain_text = {}};
  job.frames = 150;
  job.denoise.inference_steps = 8;
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
