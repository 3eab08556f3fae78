// Training runs that are stopped and go on: from a stop, from the checkpoint of an epoch, and from none that fits.
#include <filesystem>

#include "test/training_run.h"

using namespace carillon;
using namespace carillon::test;
namespace fs = std::filesystem;
using namespace carillon::training_event;

namespace {

std::string state_bytes(const std::string& folder) { return text_of(folder + "/training_state.safetensors"); }

std::vector<double> losses(const Trained& run) {
  std::vector<double> values;
  for (const auto& step : run.all<Step>()) values.push_back(step.loss);
  return values;
}

}  // namespace

TEST("training resume: a run that goes on from a checkpoint is the run that was never interrupted, bit for bit") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    TrainingOptions whole = tiny_training(design), resumed = tiny_training(design);
    const Trained uninterrupted(whole);
    resumed.resume_from = checkpoint(whole, "epoch_3_");
    if (std::holds_alternative<LoraDesign>(design)) *resumed.resume_from += "/adapter";
    const Trained rest(resumed);
    EXPECT_EQ(rest.all<Resumed>().at(0).epoch, int64_t{3});
    EXPECT_EQ(rest.all<Resumed>().at(0).step, int64_t{6});
    EXPECT(rest.all<Notice>().empty());
    EXPECT_EQ(rest.result.steps, int64_t{12});
    const auto all = losses(uninterrupted), last = losses(rest);
    EXPECT(std::vector<double>(all.begin() + 6, all.end()) == last);
    EXPECT_EQ(uninterrupted.all<Step>().back().learning_rate, rest.all<Step>().back().learning_rate);
    EXPECT_EQ(adapter_bytes(uninterrupted.result.path), adapter_bytes(rest.result.path));
    EXPECT_EQ(state_bytes(checkpoint(whole, "epoch_6_")), state_bytes(checkpoint(resumed, "epoch_6_")));
  }
}

TEST("training resume: a stop ends it before the next micro-batch, with a checkpoint that loses nothing") {
  for (const AdapterDesign& design : {AdapterDesign(kLora), AdapterDesign(kLokr)}) {
    const TrainingOptions whole = tiny_training(design);
    TrainingOptions halves = tiny_training(design);
    const Trained uninterrupted(whole);
    // Step 3 is the first of epoch 2: the stop comes in the middle of the epoch.
    const Trained stopped(halves, [](const TrainingEvent& event) {
      const auto* step = std::get_if<Step>(&event);
      return step && step->step == 3;
    });
    EXPECT(!stopped.result.completed);
    EXPECT_EQ(stopped.result.steps, int64_t{3});
    EXPECT_EQ(stopped.all<Step>().size(), size_t{3});
    EXPECT_EQ(stopped.result.path, halves.output_directory + "/checkpoints/stopped_epoch_2_step_3");
    EXPECT(!fs::exists(halves.output_directory + "/final"));
    EXPECT(!adapter_bytes(stopped.result.path).empty());

    halves.resume_from = stopped.result.path;
    const Trained rest(halves);
    EXPECT_EQ(adapter_bytes(uninterrupted.result.path), adapter_bytes(rest.result.path));
    EXPECT_EQ(state_bytes(checkpoint(whole, "epoch_6_")), state_bytes(checkpoint(halves, "epoch_6_")));
    EXPECT_EQ(uninterrupted.all<Epoch>()[1].loss, rest.all<Epoch>()[0].loss);
  }
}

TEST("training resume: a stop inside an accumulated step drops its gradients and repeats it later") {
  TrainingOptions whole = tiny_training(kLora), halves = tiny_training(kLora);
  whole.gradient_accumulation = halves.gradient_accumulation = 3;
  const Trained stopped(halves, [](const TrainingEvent& event) { return std::holds_alternative<Started>(event); });
  EXPECT(!stopped.result.completed);
  EXPECT_EQ(stopped.result.path, halves.output_directory + "/checkpoints/stopped_epoch_1_step_0");
  halves.resume_from = stopped.result.path;
  EXPECT_EQ(adapter_bytes(Trained(whole).result.path), adapter_bytes(Trained(halves).result.path));
}

TEST("training resume: a longer run goes on from where a shorter one ended") {
  TrainingOptions options = tiny_training(kLora);
  options.epochs = 3;
  const Trained three(options);
  options.epochs = 5;
  options.resume_from = checkpoint(options, "epoch_3_");
  const Trained five(options);
  EXPECT_EQ(five.all<Step>().front().step, int64_t{7});
  EXPECT_EQ(five.result.steps, int64_t{10});
}

TEST("training resume: a checkpoint of as many epochs as are asked for is not gone on with, and nothing is written") {
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

TEST("training resume: other samples or another seed go on with a notice, from the beginning of an epoch") {
  TrainingOptions options = tiny_training(kLora);
  const Trained stopped(options, [](const TrainingEvent& event) {
    const auto* step = std::get_if<Step>(&event);
    return step && step->step == 3;
  });
  options.resume_from = stopped.result.path;
  TrainingOptions seeded = options, trimmed = options;
  seeded.seed = 7;
  trimmed.trim_condition = true;
  for (const TrainingOptions& changed : {seeded, trimmed}) {
    const Trained rest(changed);
    EXPECT_EQ(rest.all<Notice>().size(), size_t{1});
    EXPECT(rest.all<Notice>()[0].text.find("beginning of epoch 2") != std::string::npos);
    EXPECT_EQ(rest.result.steps, int64_t{3 + 10});
  }
}

TEST("training resume: a run goes on with another dropout, where it was in the epoch") {
  TrainingOptions options = tiny_training(kLora);
  const Trained stopped(options, [](const TrainingEvent& event) {
    const auto* step = std::get_if<Step>(&event);
    return step && step->step == 3;
  });
  options.resume_from = stopped.result.path;
  TrainingOptions other = options;
  other.adapter = LoraDesign{.rank = kLora.rank, .alpha = kLora.alpha, .dropout = 0.5};
  other.output_directory = fixture_directory() + "/run";
  const Trained same(options), changed(other);
  EXPECT(changed.all<Notice>().empty());
  EXPECT_EQ(changed.result.steps, int64_t{12});
  EXPECT(losses(changed) != losses(same));
}

TEST("training resume: what does not fit is not resumed, and said why") {
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
  refused([](TrainingOptions& o) { o.adapter = kLokr; }, "it is of another adapter");
  refused([](TrainingOptions& o) { o.adapter = LoraDesign{.rank = 3, .alpha = 4, .dropout = 0.1}; }, "\"rank\": 2");
  refused([](TrainingOptions& o) { o.resume_from = fixture_directory(); }, "there is no training_state.safetensors");
  refused(
      [](TrainingOptions& o) {
        o.model_directory = write_tiny_ace_step(
            {.is_turbo = true}, [](Tensors& tensors) { tensors["decoder.layers.1.cross_attn.o_proj.weight"].mul_(2); });
      },
      "it was trained on other model weights");
  write_file(from + "/training_state.safetensors", "cut");
  options.resume_from = from;
  EXPECT(code_of(options) == ErrorCode::kBadCheckpoint);
}
