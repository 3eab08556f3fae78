// Resumes training runs after a stop, from the checkpoint of an epoch, and from checkpoints that do not match.
#include <algorithm>
#include <filesystem>

#include "core/adapters/adapter.h"
#include "core/checkpoint/tensor_file.h"
#include "test/tiny_adapter.h"
#include "test/training/training_run.h"

using namespace carillon;
using namespace carillon::test;
namespace fs = std::filesystem;
using namespace carillon::training_event;

namespace {

std::string state_bytes(const std::string& folder) { return text_of(folder + "/training_state.safetensors"); }

std::vector<double> losses(const Trained& run) {
  std::vector<double> values;
  for (const auto& step : run.all<StepDone>()) values.push_back(step.loss);
  return values;
}

/// Copies a checkpoint folder without its training state, as other trainers and exports write it.
std::string adapter_alone(const std::string& folder, const std::string& name = "") {
  const std::string copy = fixture_directory() + "/" + (name.empty() ? fs::path(folder).filename().string() : name);
  fs::copy(folder, copy, fs::copy_options::recursive);
  fs::remove(copy + "/training_state.safetensors");
  return copy;
}

}  // namespace

TEST("training resume: a resumed run equals the uninterrupted run bit for bit") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    TrainingOptions whole = tiny_training(design), resumed = tiny_training(design);
    const Trained uninterrupted(whole);
    resumed.resume_from = checkpoint(whole, "epoch_3_");
    if (std::holds_alternative<LoraDesign>(design)) *resumed.resume_from += "/adapter";
    const Trained rest(resumed);
    EXPECT_EQ(rest.all<RunResume>().at(0).epoch, int64_t{3});
    EXPECT_EQ(rest.all<RunResume>().at(0).step, int64_t{6});
    EXPECT(rest.all<RunNotice>().empty());
    EXPECT_EQ(rest.result.steps, int64_t{12});
    const auto all = losses(uninterrupted), last = losses(rest);
    EXPECT(std::vector<double>(all.begin() + 6, all.end()) == last);
    EXPECT_EQ(uninterrupted.all<StepDone>().back().learning_rate, rest.all<StepDone>().back().learning_rate);
    EXPECT_EQ(adapter_bytes(uninterrupted.result.path), adapter_bytes(rest.result.path));
    EXPECT_EQ(state_bytes(checkpoint(whole, "epoch_6_")), state_bytes(checkpoint(resumed, "epoch_6_")));
  }
}

TEST("training resume: a stop saves a complete checkpoint before the next micro-batch") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    const TrainingOptions whole = tiny_training(design);
    TrainingOptions halves = tiny_training(design);
    const Trained uninterrupted(whole);
    // Stop in the middle of epoch 2, whose first step is step 3.
    const Trained stopped(halves, [](const TrainingEvent& event) {
      const auto* step = std::get_if<StepDone>(&event);
      return step && step->step == 3;
    });
    EXPECT(!stopped.result.completed);
    EXPECT_EQ(stopped.result.steps, int64_t{3});
    EXPECT_EQ(stopped.all<StepDone>().size(), size_t{3});
    EXPECT_EQ(stopped.result.path, halves.output_directory + "/checkpoints/stopped_epoch_2_step_3");
    EXPECT(!fs::exists(halves.output_directory + "/final"));
    EXPECT(!adapter_bytes(stopped.result.path).empty());

    halves.resume_from = stopped.result.path;
    const Trained rest(halves);
    EXPECT_EQ(adapter_bytes(uninterrupted.result.path), adapter_bytes(rest.result.path));
    EXPECT_EQ(state_bytes(checkpoint(whole, "epoch_6_")), state_bytes(checkpoint(halves, "epoch_6_")));
    EXPECT_EQ(uninterrupted.all<EpochDone>()[1].loss, rest.all<EpochDone>()[0].loss);
  }
}

TEST("training resume: a stop during gradient accumulation drops the gradients; resuming repeats the step") {
  TrainingOptions whole = tiny_training(kLora), halves = tiny_training(kLora);
  whole.gradient_accumulation = halves.gradient_accumulation = 3;
  const Trained stopped(halves, [](const TrainingEvent& event) { return std::holds_alternative<RunStart>(event); });
  EXPECT(!stopped.result.completed);
  EXPECT_EQ(stopped.result.path, halves.output_directory + "/checkpoints/stopped_epoch_1_step_0");
  halves.resume_from = stopped.result.path;
  EXPECT_EQ(adapter_bytes(Trained(whole).result.path), adapter_bytes(Trained(halves).result.path));
}

TEST("training resume: a longer run continues where a shorter one ended") {
  TrainingOptions options = tiny_training(kLora);
  options.epochs = 3;
  const Trained three(options);
  options.epochs = 5;
  options.resume_from = checkpoint(options, "epoch_3_");
  const Trained five(options);
  EXPECT_EQ(five.all<StepDone>().front().step, int64_t{7});
  EXPECT_EQ(five.result.steps, int64_t{10});
}

TEST("training resume: rejects a checkpoint with all epochs finished and writes nothing") {
  TrainingOptions options = tiny_training(kLora);
  options.epochs = 3;
  const Trained three(options);
  options.resume_from = checkpoint(options, "epoch_3_");
  options.output_directory = fixture_directory() + "/run";
  for (const int64_t epochs : {3, 2}) {
    options.epochs = epochs;
    EXPECT(code_of(options) == ErrorCode::kBadArgument);
    EXPECT_THROWS(Trained{options}, "has 3 finished epochs and train_epochs is " + std::to_string(epochs));
  }
  EXPECT(!fs::exists(options.output_directory + "/final"));
}

TEST("training resume: other samples or another seed restart the epoch with a notice") {
  TrainingOptions options = tiny_training(kLora);
  const Trained stopped(options, [](const TrainingEvent& event) {
    const auto* step = std::get_if<StepDone>(&event);
    return step && step->step == 3;
  });
  options.resume_from = stopped.result.path;
  TrainingOptions seeded = options, trimmed = options;
  seeded.seed = 7;
  trimmed.trim_condition = true;
  for (const TrainingOptions& changed : {seeded, trimmed}) {
    const Trained rest(changed);
    EXPECT_EQ(rest.all<RunNotice>().size(), size_t{1});
    EXPECT(rest.all<RunNotice>()[0].text.find("beginning of epoch 2") != std::string::npos);
    EXPECT_EQ(rest.result.steps, int64_t{3 + 10});
  }
}

TEST("training resume: a run with another dropout continues within its epoch") {
  TrainingOptions options = tiny_training(kLora);
  const Trained stopped(options, [](const TrainingEvent& event) {
    const auto* step = std::get_if<StepDone>(&event);
    return step && step->step == 3;
  });
  options.resume_from = stopped.result.path;
  TrainingOptions other = options;
  other.adapter = Lora{.rank = kLora.rank, .alpha = kLora.alpha, .dropout = 0.5};
  other.output_directory = fixture_directory() + "/run";
  const Trained same(options), changed(other);
  EXPECT(changed.all<RunNotice>().empty());
  EXPECT_EQ(changed.result.steps, int64_t{12});
  EXPECT(losses(changed) != losses(same));
}

TEST("training resume: rejects a checkpoint that does not match, with the reason") {
  TrainingOptions options = tiny_training(kLora);
  const Trained run(options);
  const std::string from = checkpoint(options, "epoch_3_");
  const auto refused = [&](const std::function<void(TrainingOptions&)>& change, const char* reason) {
    TrainingOptions changed = options;
    changed.resume_from = from;
    change(changed);
    EXPECT(code_of(changed) == ErrorCode::kBadArgument);
    EXPECT_THROWS(Trained{changed}, reason);
  };
  refused([](TrainingOptions& o) { o.adapter = kLokr; }, "it has another adapter design");
  refused([](TrainingOptions& o) { o.adapter = Lora{.rank = 3, .alpha = 4, .dropout = 0.1}; }, "\"rank\": 2");
  refused([](TrainingOptions& o) { o.resume_from = fixture_directory(); }, "it has no training_state.safetensors");
  refused(
      [](TrainingOptions& o) {
        o.model = write_tiny_ace_step(
            {.is_turbo = true}, [](Tensors& tensors) { tensors["decoder.layers.1.cross_attn.o_proj.weight"].mul_(2); });
      },
      "it was trained on other model weights");
  write_file(from + "/training_state.safetensors", "cut");
  options.resume_from = from;
  EXPECT(code_of(options) == ErrorCode::kBadCheckpoint);
}

TEST("training resume: an adapter without training state continues after the epoch in its name with a new optimiser") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    const TrainingOptions whole = tiny_training(design);
    TrainingOptions rest = whole;
    const Trained uninterrupted(whole);
    rest.output_directory = fixture_directory() + "/run";
    rest.save_every_epochs = 1;
    rest.resume_from = adapter_alone(checkpoint(whole, "epoch_3_"));
    for (const char* ending : {"", "/", "/adapter"}) {
      if (*ending && std::holds_alternative<LokrDesign>(design)) continue;
      TrainingOptions options = rest;
      *options.resume_from += ending;
      const Trained run(options);
      const RunResume resumed = run.all<RunResume>().at(0);
      EXPECT_EQ(resumed.epoch, int64_t{3});
      EXPECT_EQ(resumed.step, int64_t{6});
      EXPECT(!resumed.has_optimizer);
      EXPECT(run.all<RunNotice>().at(0).text.find("beginning of epoch 4 with a fresh optimiser") != std::string::npos);
      EXPECT_EQ(run.result.steps, int64_t{12});
      // The first loss equals that of the uninterrupted run, because weights, inputs and learning rate are equal. The
      // first update differs, because the optimiser is fresh.
      EXPECT_EQ(losses(run).at(0), losses(uninterrupted).at(6));
      EXPECT_EQ(run.all<StepDone>()[0].learning_rate, uninterrupted.all<StepDone>()[6].learning_rate);
      EXPECT(losses(run).at(1) != losses(uninterrupted).at(7));
    }
    // The resumed run saves the optimiser state again. Resuming from its checkpoint gives the same adapter.
    const std::string bytes = adapter_bytes(rest.output_directory + "/final");
    rest.resume_from = checkpoint(rest, "epoch_5_");
    rest.output_directory = fixture_directory() + "/run";
    EXPECT_EQ(adapter_bytes(Trained(rest).result.path), bytes);
  }
}

TEST("training resume: the first step of a fresh optimiser changes weights by the learning rate") {
  TrainingOptions options = tiny_training(kLora);
  options.gradient_accumulation = 3;  // one step per epoch
  const Trained whole(options);
  const std::string from = adapter_alone(checkpoint(options, "epoch_3_"));
  options.resume_from = from;
  options.epochs = 4;
  options.output_directory = fixture_directory() + "/run";
  const Trained run(options);
  EXPECT_EQ(run.all<StepDone>().size(), size_t{1});
  const auto weights = [](const std::string& folder) {
    return Safetensors(folder + "/adapter/adapter_model.safetensors");
  };
  const Safetensors before = weights(from), after = weights(run.result.path);
  double longest = 0;
  for (const auto& name : before.names()) {
    longest = std::max(longest, largest_difference(before.tensor(name), after.tensor(name)));
  }
  EXPECT_NEAR(longest / run.all<StepDone>()[0].learning_rate, 1.0, 0.02);
}

TEST("training resume: an adapter without an epoch in its name starts a new run") {
  TrainingOptions options = tiny_training(kLora);
  const Trained first(options);
  options.resume_from = first.result.path;  // final/
  options.output_directory = fixture_directory() + "/run";
  const Trained second(options);
  EXPECT_EQ(second.all<RunResume>().at(0).step, int64_t{0});
  EXPECT_EQ(second.all<StepDone>().size(), size_t{12});
  EXPECT(losses(second).at(0) != losses(first).at(0));

  options.resume_from = adapter_alone(first.result.path, "epoch_6_loss_0.1");
  EXPECT(code_of(options) == ErrorCode::kBadArgument);
  EXPECT_THROWS(Trained{options}, "has 6 finished epochs and train_epochs is 6");
}

TEST("training resume: starts from an adapter saved by another program") {
  const AceStep model = AceStep::load(tiny_training(kLora).model, {at::kCPU, at::kFloat}, Control());
  const LoraDesign design = Lora{.rank = kTinyRank, .alpha = kTinyAlpha, .dropout = 0};
  Tensors tensors = lora_tensors(attention_of(model.dit), [](const std::string& module, const std::string& part) {
    return "diffusion_model." + module + (part == "lora_A" ? ".lora_down" : ".lora_up") + ".weight";
  });
  for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
  TrainingOptions options = tiny_training(design);
  options.learning_rate = 1e-12;  // keeps the weights unchanged
  options.epochs = options.save_every_epochs = 1;
  options.resume_from = write_peft(tensors);
  const Trained run(options);
  const auto targets = attention_of(model.dit);
  const Adapter given = read_adapter(*options.resume_from, targets), made = read_adapter(run.result.path, targets);
  for (size_t i = 0; i < given.modules.size(); ++i) {
    const at::Tensor a = given.modules[i].w2.value(at::kCPU), b = made.modules[i].w2.value(at::kCPU);
    EXPECT(largest_difference(a, b) < 1e-6);
  }
}

TEST("training resume: rejects an adapter without training state if it does not fit the run, with the reason") {
  const auto refused = [](const std::string& from, const AdapterDesign& design, const std::string& reason) {
    TrainingOptions options = tiny_training(design);
    options.resume_from = from;
    EXPECT(code_of(options) == ErrorCode::kBadArgument);
    EXPECT_THROWS(Trained{options}, from + " cannot be resumed: ");
    EXPECT_THROWS(Trained{options}, reason);
  };
  const auto final_of = [](const AdapterDesign& design) {
    TrainingOptions options = tiny_training(design);
    options.epochs = 1;
    return Trained(options).result.path;
  };
  const std::string lora = final_of(kLora), lokr = final_of(kLokr);
  const std::string q = "layers.0.self_attn.q_proj has ";
  refused(lora, kLokr, "its kind is lora, not lokr");
  refused(lokr, kLora, "its kind is lokr, not lora");
  refused(lora, Lora{.rank = 3, .alpha = 6},
          q + "lora_A [2, 32], lora_B [32, 2] in the file, but lora_A [3, 32], lora_B [32, 3] in this run: rank");
  refused(lora, Lora{.rank = 2, .alpha = 5},
          "the scale of layers.0.self_attn.q_proj is 2.000000 in the file, but 2.500000");
  LokrDesign design = kLokr;
  design.weight_decompose = false;
  refused(lokr, design, "dora_scale [32, 1] in the file, ");
  design = kLokr;
  design.factor = 2;
  refused(lokr, design, "lokr_w1 [4, 4], ");
  design = kLokr;
  design.dimension = 1;  // decompose_both makes w1 a product, but files store one matrix
  refused(final_of(design), design, "lokr_w1_a [4, 1], lokr_w1_b [1, 4], ");

  Tensors tensors;
  const Safetensors file = Safetensors(lora + "/adapter/adapter_model.safetensors");
  for (const auto& name : file.names()) tensors[name] = file.tensor(name).clone();
  const std::string config = text_of(lora + "/adapter/adapter_config.json");
  tensors["base_model.model.layers.0.mlp.up_proj.lora_A.weight"] = at::ones({2, 32});
  tensors["base_model.model.layers.0.mlp.up_proj.lora_B.weight"] = at::ones({48, 2});
  refused(write_peft(tensors, config), kLora, "up_proj.lora_A.weight' belongs to no trained projection");
  tensors.erase("base_model.model.layers.0.mlp.up_proj.lora_A.weight");
  tensors.erase("base_model.model.layers.0.mlp.up_proj.lora_B.weight");
  tensors.erase(peft_key("layers.1.cross_attn.k_proj", "lora_A"));
  tensors.erase(peft_key("layers.1.cross_attn.k_proj", "lora_B"));
  refused(write_peft(tensors, config), kLora, "it changes 15 of the 16 projections that are trained");
  refused(fixture_directory(), kLora, "no adapter found");
}
