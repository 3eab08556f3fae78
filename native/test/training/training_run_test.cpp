// Whole training runs: events, files and errors.
#include "test/training/training_run.h"

#include <filesystem>
#include <set>

#include "core/adapters/adapter.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"
#include "core/training/batches.h"
#include "core/training/run_files.h"
#include "test/file_size_limit.h"
#include "test/memory_limit.h"

using namespace carillon;
using namespace carillon::test;
namespace fs = std::filesystem;
using namespace carillon::training_event;

namespace {

/// Names below `folder`, sorted, with folders ending in a slash.
std::set<std::string> tree(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.insert(fs::relative(entry.path(), folder).string() + (entry.is_directory() ? "/" : ""));
  }
  return names;
}

}  // namespace

TEST("training run: reports every step and epoch and saves the adapter in final/") {
  const TrainingOptions options = tiny_training(kLora);
  const Trained run(options);
  EXPECT(run.result.completed);
  EXPECT_EQ(run.result.path, options.output_directory + "/final");
  EXPECT_EQ(run.result.steps, int64_t{12});  // 3 samples make 2 steps of 2 micro-batches, the second of them short
  EXPECT_EQ(run.all<SamplesLoaded>().at(0).samples, int64_t{3});
  const RunStart started = run.all<RunStart>().at(0);
  EXPECT_EQ(started.device, std::string("cpu"));
  EXPECT_EQ(started.precision, std::string("32-true"));
  EXPECT_EQ(started.total_steps, int64_t{12});
  EXPECT_EQ(started.trainable_parameters, int64_t{kTinyLayers * 2 * 2 * (64 + 48 + 48 + 64)});
  const auto steps = run.all<StepDone>();
  const auto epochs = run.all<EpochDone>();
  EXPECT_EQ(steps.size(), size_t{12});
  EXPECT_EQ(epochs.size(), size_t{6});
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(steps[i].epoch, static_cast<int64_t>(i) / 2 + 1);
    EXPECT(steps[i].gradient_norm > 0);
  }
  EXPECT_NEAR(steps[0].learning_rate, 1e-3, 1e-12);
  EXPECT_NEAR(steps[1].learning_rate, 1e-2, 1e-12);
  EXPECT_NEAR(epochs[2].loss, (steps[4].loss + steps[5].loss) / 2, 1e-12);
}

TEST("training run: writes complete checkpoints every n epochs and one log line per step") {
  TrainingOptions options = tiny_training(kLora);
  options.epochs = 5;
  options.save_every_epochs = 2;
  const Trained run(options);
  const auto saved = run.all<training_event::CheckpointSaved>();
  EXPECT_EQ(saved.size(), size_t{2});
  EXPECT_EQ(saved[1].epoch, int64_t{4});
  const auto name_of = [&](int64_t epoch) {
    char name[64];
    std::snprintf(name, sizeof name, "epoch_%d_loss_%.4f", static_cast<int>(epoch),
                  run.all<EpochDone>().at(static_cast<size_t>(epoch) - 1).loss);
    return std::string(name);
  };
  EXPECT_EQ(saved[0].path, options.output_directory + "/checkpoints/" + name_of(2));
  std::set<std::string> expected = {"logs/", "logs/metrics.jsonl", "checkpoints/", "final/"};
  for (const std::string& folder :
       {std::string("final/"), "checkpoints/" + name_of(2) + "/", "checkpoints/" + name_of(4) + "/"}) {
    for (const char* name :
         {"", "adapter/", "adapter/adapter_config.json", "adapter/adapter_model.safetensors", "training_info.json"}) {
      expected.insert(folder + name);
    }
    if (folder != "final/") expected.insert(folder + "training_state.safetensors");
  }
  EXPECT(tree(options.output_directory) == expected);

  std::ifstream log(options.output_directory + "/logs/metrics.jsonl");
  std::string line;
  for (const StepDone& step : run.all<StepDone>()) {
    EXPECT(static_cast<bool>(std::getline(log, line)));
    const Json entry = Json::parse(line, "metrics.jsonl");
    EXPECT_EQ(entry.get_int("step"), step.step);
    EXPECT_EQ(entry.get_double("loss"), step.loss);
  }
  EXPECT(!std::getline(log, line));
}

TEST("training run: drops conditions for guided models, but not for turbo models") {
  const std::string base = write_tiny_ace_step({});
  const auto dropout = [](const std::string& model, const std::string& name, std::optional<double> asked) {
    TrainingOptions options = tiny_training(kLora);
    options.model = model;
    options.model_name = name;
    options.condition_dropout = asked;
    options.epochs = 1;
    return Json::read_file(Trained(options).result.path + "/training_info.json")
        .at("training_config")
        .get_double("condition_dropout");
  };
  EXPECT_EQ(dropout(base, "base", {}), 0.15);
  EXPECT_EQ(dropout(base, "fork-of-turbo", {}), 0.0);
  EXPECT_EQ(dropout(tiny_training(kLora).model.path, "tiny", {}), 0.0);
  EXPECT_EQ(dropout(base, "fork-of-turbo", 0.5), 0.5);
}

TEST("training run: trains on padding of conditions unless trim_condition is set") {
  TrainingSample padded = random_sample(12, 5, 1), cut = padded;
  padded.encoder_attention_mask = at::tensor({1, 1, 1, 0, 0}).to(at::kBool);
  cut.encoder_hidden_states = cut.encoder_hidden_states.narrow(0, 0, 3);
  cut.encoder_attention_mask = at::ones({3}, at::kBool);
  const auto trained = [](const TrainingSample& sample, bool trim) {
    TrainingOptions options = tiny_training(kLora);
    options.samples = write_samples({sample});
    options.trim_condition = trim;
    return adapter_bytes(Trained(options).result.path);
  };
  EXPECT_EQ(trained(padded, true), trained(cut, false));
  EXPECT(trained(padded, false) != trained(cut, false));
  padded.encoder_attention_mask = at::zeros({5}, at::kBool);
  EXPECT_THROWS(trained(padded, true), "0.pt: encoder_attention_mask has no real token");
}

TEST("training run: training_info.json names samples and options, but no paths") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    TrainingOptions options = tiny_training(design);
    options.seed = 7;
    const std::string final = Trained(options).result.path;
    const std::string text = text_of(final + "/training_info.json");
    const Json run = Json::parse(text, "training_info.json");
    EXPECT_EQ(run.at("tensor_dir").as_string(), std::string("songs"));
    EXPECT_EQ(run.get_int("num_samples"), int64_t{3});
    EXPECT_EQ(run.at("training_config").get_int("seed"), int64_t{7});
    EXPECT_EQ(run.at("training_config").get_double("learning_rate"), 1e-2);
    EXPECT(text.find('/') == std::string::npos);
    if (std::holds_alternative<LoraDesign>(design)) continue;
    EXPECT_EQ(Safetensors(final + "/lokr_weights.safetensors").metadata().at("run_metadata") + "\n", text);
  }
}

TEST("training run: overfits a sample, and a model with the saved adapter reproduces it") {
  if (kIsSanitized) SKIP(kTooSlowSanitized);
  // Make overfitting easy: a large output range, a low weight for the noisy state (noise cannot be learnt), and a
  // sample that is louder than the noise.
  const auto prepared = [](Tensors& tensors) {
    tensors["decoder.proj_out.1.weight"].mul_(7);
    tensors["decoder.proj_in.1.weight"].narrow(1, 2 * kTinyLatent, kTinyLatent).mul_(0.1);
  };
  const TrainingSample sample = random_sample(16, 6, 1, 4.0);
  const std::string model = write_tiny_ace_step({.is_turbo = true}, prepared);
  for (const AdapterDesign& design :
       {AdapterDesign(Lora{.rank = 16, .alpha = 32, .dropout = 0.0}), AdapterDesign(Lokr{.factor = 1})}) {
    TrainingOptions options = tiny_training(design);
    options.model = model;
    options.samples = write_samples({sample});
    options.gradient_accumulation = 1;
    options.epochs = options.save_every_epochs = 400;
    const Trained run(options);

    AceStep reloaded = AceStep::load(model, options.placement, Control());
    const SamplingOptions sampling{FlowTimeDistribution::discrete(3.0), 0.0, reloaded.null_condition, options.seed};
    const auto loss = [&] {
      double sum = 0;
      for (int64_t unseen = 1000; unseen < 1016; ++unseen) {
        sum += flow_matching_loss(reloaded.dit, make_parts({sample}, sampling, unseen, options.placement)[0].batch)
                   .item<double>();
      }
      return sum / 16;
    };
    const double before = loss();
    const auto weights = carillon::Checkpoint::open(model).weights(options.placement);
    const auto adapter = std::make_shared<const Adapter>(
        read_adapter(run.result.path, adapter_targets(reloaded.dit)));
    merge_adapters(reloaded.dit, weights.sub("decoder"), {{adapter, 1.0}});
    const double after = loss();
    EXPECT(after < 0.1 * before);
    EXPECT(after < 8);  // a zero velocity has a loss of about 17
  }
}

TEST("training run: the adapter is determined by the seed") {
  TrainingOptions first = tiny_training(kLora), again = tiny_training(kLora), other = tiny_training(kLora);
  other.seed = 43;
  EXPECT_EQ(adapter_bytes(Trained(first).result.path), adapter_bytes(Trained(again).result.path));
  EXPECT(adapter_bytes(first.output_directory + "/final") != adapter_bytes(Trained(other).result.path));
  // A second run in the same directory replaces the files of the first.
  EXPECT_EQ(adapter_bytes(Trained(first).result.path), adapter_bytes(again.output_directory + "/final"));
}

TEST("training run: the gradient of a step is the mean of its micro-batches, also of a shorter last group") {
  TrainingOptions alone = tiny_training(kLora), groups = tiny_training(kLora);
  alone.samples = groups.samples = write_samples({random_sample(12, 5, 1)});
  alone.gradient_accumulation = 1;
  groups.gradient_accumulation = 4;
  const auto expected = Trained(alone).all<StepDone>(), found = Trained(groups).all<StepDone>();
  EXPECT_EQ(found.size(), size_t{6});
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].loss, expected[i].loss);
    EXPECT_EQ(found[i].gradient_norm, expected[i].gradient_norm);
  }
}

TEST("training run: gradient checkpointing does not change the result") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    TrainingOptions plain = tiny_training(design), saving = tiny_training(design);
    saving.gradient_checkpointing = true;
    plain.batch_size = saving.batch_size = 3;
    EXPECT_EQ(adapter_bytes(Trained(plain).result.path), adapter_bytes(Trained(saving).result.path));
  }
}

TEST("training run: a bfloat16 model trains a float32 adapter") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    TrainingOptions plain = tiny_training(design), saving = tiny_training(design);
    plain.placement.dtype = saving.placement.dtype = at::kBFloat16;
    saving.gradient_checkpointing = true;
    const Trained run(plain);
    EXPECT_EQ(run.all<RunStart>().at(0).precision, std::string("bf16-mixed"));
    EXPECT_EQ(run.all<StepDone>().size(), size_t{12});
    const Safetensors state = Safetensors(checkpoint(plain, "epoch_6_") + "/training_state.safetensors");
    for (const auto& name : state.names()) EXPECT(state.tensor(name).scalar_type() == at::kFloat);
    EXPECT_EQ(adapter_bytes(run.result.path), adapter_bytes(Trained(saving).result.path));
  }
}

TEST("training run: skips a step with a gradient that is not finite and continues") {
  TrainingOptions options = tiny_training(kLora);
  options.samples = write_samples({random_sample(12, 5, 1), random_sample(12, 5, 2, 1e30)});
  options.gradient_accumulation = 1;
  const Trained run(options);
  EXPECT(run.result.completed);
  EXPECT_EQ(run.all<StepSkipped>().size(), size_t{6});
  const StepSkipped skipped = run.all<StepSkipped>().front();
  EXPECT(skipped.not_finite > 0 && skipped.not_finite <= skipped.parameters);
  EXPECT_EQ(run.all<StepDone>().size(), size_t{6});
  EXPECT_EQ(run.result.steps, int64_t{6});
  const Safetensors adapter = Safetensors(run.result.path + "/adapter/adapter_model.safetensors");
  for (const auto& name : adapter.names()) EXPECT(adapter.tensor(name).isfinite().all().item<bool>());
}

TEST("training run: an epoch without a finite step ends the run, and finished checkpoints stay") {
  TrainingOptions options = tiny_training(kLora);
  options.samples = write_samples({random_sample(12, 5, 1)});
  options.save_every_epochs = 1;
  const auto spoil = [&](const TrainingEvent& event) {
    if (std::holds_alternative<training_event::CheckpointSaved>(event)) {
      write_sample(options.samples[0], random_sample(12, 5, 1, 1e30));
    }
    return false;
  };
  bool failed = false;
  try {
    Trained(options, spoil);
  } catch (const Error& error) {
    failed = error.code() == ErrorCode::kNotFinite;
    EXPECT(std::string(error.what()).find("epoch 2") != std::string::npos);
  }
  EXPECT(failed);
  EXPECT(!adapter_bytes(checkpoint(options, "epoch_1_")).empty());
  EXPECT(!fs::exists(options.output_directory + "/final"));
}

TEST("training run: a write error ends the run and keeps only finished checkpoints") {
  TrainingOptions options = tiny_training(Lora{.rank = 4});
  options.save_every_epochs = 1;
  std::optional<FileSizeLimit> limit;
  const auto fill_disk = [&](const TrainingEvent& event) {
    if (std::holds_alternative<training_event::CheckpointSaved>(event)) limit.emplace(4096);
    return false;
  };
  bool failed = false;
  try {
    Trained(options, fill_disk);
  } catch (const Error& error) {
    limit.reset();
    failed = error.code() == ErrorCode::kStorage;
    EXPECT(std::string(error.what()).find("cannot be written: File too large") != std::string::npos);
  }
  EXPECT(failed);
  for (const auto& name : tree(options.output_directory)) EXPECT(name.find("partial") == std::string::npos);
  TrainingOptions rest = options;
  rest.resume_from = checkpoint(options, "epoch_1_");
  EXPECT(Trained(rest).result.completed);

  options.output_directory = options.samples[0] + "/below-a-file";
  EXPECT(code_of(options) == ErrorCode::kStorage);
}

TEST("training run: removes a log line that a full disk cut off") {
  const std::string directory = fixture_directory() + "/run", path = directory + "/logs/metrics.jsonl";
  RunFiles files(directory, false);
  files.log(R"({"step": 1})");
  {
    const FileSizeLimit limit(fs::file_size(path) + 5);
    EXPECT_THROWS(files.log(R"({"step": 2})"), path + " cannot be written: File too large");
  }
  files.log(R"({"step": 3})");
  EXPECT_EQ(text_of(path), std::string("{\"step\": 1}\n{\"step\": 3}\n"));
}

TEST("training run: an OOM error suggests gradient checkpointing unless it is on") {
  // A factor of this adapter exceeds the available memory.
  TrainingOptions options = tiny_training(Lora{.rank = 1'000'000});
  const auto refusal = [&](bool gradient_checkpointing) -> std::string {
    options.gradient_checkpointing = gradient_checkpointing;
    const MemoryLimit limit(100 << 20);
    try {
      Trained run(options);
    } catch (const Error& error) {
      EXPECT(error.code() == ErrorCode::kOutOfMemory);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(false).find("gradient_checkpointing would need less memory; not enough memory"), size_t{0});
  EXPECT_EQ(refusal(true).find("not enough memory"), size_t{0});
}

TEST("training run: rejects invalid options and unusable samples before the first step") {
  const auto code = [](const std::function<void(TrainingOptions&)>& change) {
    TrainingOptions options = tiny_training(kLora);
    change(options);
    return code_of(options);
  };
  const auto refused = ErrorCode::kBadArgument;
  EXPECT(code([](TrainingOptions& o) { o.samples.clear(); }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.epochs = 0; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.batch_size = 0; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.gradient_accumulation = 0; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.save_every_epochs = 0; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.learning_rate = 0; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.shift = -1; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.condition_dropout = 1.5; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.adapter = Lora{.rank = 0}; }) == refused);
  EXPECT(code([](TrainingOptions& o) { o.samples[1] += ".absent"; }) == ErrorCode::kBadCheckpoint);
  EXPECT(code([](TrainingOptions& o) { o.model.path += "/absent"; }) == ErrorCode::kBadCheckpoint);
}
