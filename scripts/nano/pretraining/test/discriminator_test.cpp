// The decoder's discriminator: who learns what from it, and that it learns.
#include "pretraining/discriminator.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/parameters.h"
#include "pretraining/initial_weights.h"
#include "pretraining/train_state.h"
#include "test/test.h"

using namespace carillon;
using namespace carillon::pretraining;
using namespace carillon::test;

namespace {

constexpr int64_t kSamples = 9600;

/// Stereo, [1, 2, samples] at 48 kHz.
at::Tensor tone(double hertz) {
  const at::Tensor time = at::arange(kSamples, at::kDouble) / 48000;
  return (0.2 * (time * (2 * M_PI * hertz)).sin()).to(at::kFloat).expand({1, 2, -1}).contiguous();
}

at::Tensor hiss() { return 0.1 * at::randn({1, 2, kSamples}); }

}  // namespace

TEST("discriminator: it and the decoder do not learn each other's part") {
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const at::Tensor made = hiss().requires_grad_();
  const auto gradients = [&](const std::vector<std::string>& names) {  // of the audio and of the weights, whether any
    const Loss loss = Discriminator(at::kCPU).loss(weights, made, tone(220));
    at::Tensor sum = at::zeros({});
    for (const std::string& name : names) sum = sum + loss.parts.at(name);
    sum.backward();
    const bool audio = made.grad().defined() && made.grad().any().item<bool>();
    bool own = false;
    for (const auto& [name, leaf] : parameters->leaves()) {
      own = own || (leaf.grad().defined() && leaf.grad().any().item<bool>());
      leaf.mutable_grad() = at::Tensor();
    }
    made.mutable_grad() = at::Tensor();
    return std::pair(audio, own);
  };
  EXPECT(gradients({"passing", "features"}) == std::pair(true, false));
  EXPECT(gradients({"judging"}) == std::pair(false, true));
}

TEST("discriminator: learns to tell hiss from a tone") {
  at::manual_seed(1);
  const auto parameters = std::make_shared<Parameters>(at::kCPU, initial_weights(1));
  const Weights weights = Checkpoint::of(parameters).weights({at::kCPU, at::kFloat});
  const Discriminator discriminator(at::kCPU);
  TrainState state(parameters);
  constexpr int64_t kSteps = 60, kJudged = 10;  // the mean of the last: a single step's error leaps, here or there
  double judging = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Loss loss = discriminator.loss(weights, hiss(), tone(220 + 5.0 * static_cast<double>(step)));
    if (step >= kSteps - kJudged) judging += loss.parts.at("judging").item<double>() / kJudged;
    loss.total.backward();
    state.update(3e-3, 0);
  }
  EXPECT_NEAR(judging, 0, 0.2);  // 0.5 where it cannot tell
}
