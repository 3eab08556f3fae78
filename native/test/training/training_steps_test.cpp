// Tests parts of the training loop: learning rate, timesteps, optimiser, batches and checkpointed layers.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <map>
#include <set>

#include "core/runtime/error.h"
#include "core/training/batches.h"
#include "core/training/optimizer.h"
#include "core/training/random_draws.h"
#include "core/training/trainable_adapter.h"
#include "test/training/training_run.h"

using namespace carillon;
using namespace carillon::test;

namespace {

SamplingOptions sampling(double condition_dropout = 0.0) {
  return {FlowTimeDistribution::discrete(3.0), condition_dropout, at::full({1, 1, kTinyEncoder}, 7.0), 42};
}

const Placement kPlacement{at::kCPU, at::kFloat};

/// Gradients of `loss` for all parameters of an adapter, concatenated.
at::Tensor flat_gradient(const TrainableAdapter& adapter) {
  std::vector<at::Tensor> rows;
  for (const auto& [name, parameter] : adapter.parameters()) rows.push_back(parameter.grad().reshape({-1}));
  return at::cat(rows);
}

void clear_gradients(const TrainableAdapter& adapter) {
  for (auto [name, parameter] : adapter.parameters()) parameter.mutable_grad() = at::Tensor();
}

double loss_of(const AceStep& model, const std::vector<MicroBatchPart>& parts, double divisor,
               const LayerRunner& run = run_layer) {
  double sum = 0;
  for (const MicroBatchPart& part : parts) {
    const at::Tensor loss = flow_matching_loss(model.dit, part.batch, run) * part.weight;
    (loss / divisor).backward();
    sum += loss.item<double>();
  }
  return sum;
}

}  // namespace

TEST("learning rate: matches the reference") {
  const LearningRate forty = LearningRate::plan(1e-4, 40);
  const std::map<int64_t, double> expected = {{0, 1e-5},        {1, 3.25e-5},    {2, 5.5e-5},    {3, 7.75e-5},
                                              {4, 1e-4},        {5, 9.98116e-5}, {6, 9.9248e-5}, {22, 5.05e-5},
                                              {39, 1.18836e-6}, {40, 1e-4}};
  for (const auto& [step, rate] : expected) EXPECT_NEAR(forty.at(step) / rate, 1.0, 1e-5);
  const LearningRate twenty = LearningRate::plan(0.03, 20);
  for (const auto& [step, rate] :
       std::map<int64_t, double>{{0, 0.003}, {1, 0.0165}, {3, 0.0297744}, {11, 0.01515}, {19, 0.000525605}}) {
    EXPECT_NEAR(twenty.at(step) / rate, 1.0, 1e-5);
  }
  const LearningRate many = LearningRate::plan(1e-4, 2000);
  for (const auto& [step, rate] :
       std::map<int64_t, double>{{50, 5.5e-5}, {99, 9.91e-5}, {500, 8.95625e-5}, {1999, 1.00007e-6}}) {
    EXPECT_NEAR(many.at(step) / rate, 1.0, 1e-5);
  }
}

TEST("learning rate: a run of one step has a warm-up of one step") {
  const LearningRate one = LearningRate::plan(1.0, 1);
  EXPECT_EQ(one.warmup_steps, int64_t{1});
  EXPECT_EQ(one.decay_steps, int64_t{1});
  EXPECT_NEAR(one.at(0), 0.1, 1e-12);
  EXPECT_NEAR(one.at(1), 1.0, 1e-12);
}

TEST("flow times: discrete draws the eight turbo times uniformly") {
  const double expected[] = {1.0, 0.9545454545454546, 0.9, 0.8333333333333334, 0.75, 0.6428571428571429, 0.5, 0.3};
  for (const double shift : {3.0, 0.0}) {
    const FlowTimeDistribution distribution = FlowTimeDistribution::discrete(shift);
    PhiloxStream stream(1);
    constexpr int kDraws = 8000;
    std::map<double, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[distribution.draw(stream)];
    EXPECT_EQ(counts.size(), size_t{8});
    double chi_square = 0;
    for (const double time : expected) {
      const auto found = counts.lower_bound(time - 1e-12);
      EXPECT_NEAR(found->first, time, 1e-12);
      chi_square += std::pow(found->second - kDraws / 8.0, 2) / (kDraws / 8.0);
    }
    EXPECT(chi_square < 24.3);  // 7 degrees of freedom, p = 0.001
  }
  PhiloxStream stream(1);
  std::set<double> unshifted;
  for (int i = 0; i < 500; ++i) unshifted.insert(FlowTimeDistribution::discrete(1.0).draw(stream));
  EXPECT(unshifted == (std::set<double>{1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125}));
}

TEST("flow times: logit-normal takes the larger of two normal draws") {
  const FlowTimeDistribution distribution = FlowTimeDistribution::logit_normal(-0.4, 1.0);
  PhiloxStream stream(1);
  std::vector<double> times;
  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    times.push_back(distribution.draw(stream));
    sum += times.back(), squares += times.back() * times.back();
  }
  std::sort(times.begin(), times.end());
  EXPECT_NEAR(sum / kDraws, 0.535, 0.005);
  EXPECT_NEAR(std::sqrt(squares / kDraws - std::pow(sum / kDraws, 2)), 0.179, 0.005);
  EXPECT_NEAR(times[kDraws / 10], 0.2935, 0.008);
  EXPECT_NEAR(times[kDraws / 2], 0.5362, 0.008);
  EXPECT_NEAR(times[kDraws * 9 / 10], 0.7742, 0.008);
}

TEST("flow times: auto depends on the model, an explicit choice does not") {
  DitConfig model{};
  model.timestep_mu = -0.4, model.timestep_sigma = 1.0;
  TrainingOptions options{};
  const auto is_discrete = [&](bool is_turbo, TimestepSampling sampling) {
    model.is_turbo = is_turbo;
    options.timestep_sampling = sampling;
    PhiloxStream stream(1);
    const FlowTimeDistribution distribution = FlowTimeDistribution::choose(options, model);
    std::set<double> times;
    for (int i = 0; i < 50; ++i) times.insert(distribution.draw(stream));
    return times.size() <= 8;
  };
  EXPECT(is_discrete(true, TimestepSampling::kAuto));
  EXPECT(!is_discrete(false, TimestepSampling::kAuto));
  EXPECT(is_discrete(false, TimestepSampling::kDiscrete));
  EXPECT(!is_discrete(true, TimestepSampling::kLogitNormal));
  options.model_name = "acestep-v15-turbo-fork";  // turbo according to its name only
  EXPECT(is_discrete(false, TimestepSampling::kAuto));
  EXPECT(!is_discrete(false, TimestepSampling::kLogitNormal));
}

TEST("adamw: the first step matches the reference, and weight decay applies to zero gradients") {
  at::Tensor parameter = at::zeros({1}).requires_grad_(), heavy = at::ones({1}).requires_grad_();
  torch::optim::AdamW optimizer = make_adamw({parameter, heavy});
  parameter.mutable_grad() = at::ones({1});
  heavy.mutable_grad() = at::zeros({1});
  apply_gradients(optimizer, 1e-4);
  EXPECT_NEAR(parameter.item<double>(), -1e-4 * (1 - 1e-8), 1e-11);
  EXPECT_NEAR(adamw_state(optimizer, parameter).exp_avg().item<double>(), 0.1, 1e-7);
  EXPECT_NEAR(adamw_state(optimizer, parameter).exp_avg_sq().item<double>(), 0.001, 1e-9);
  EXPECT_NEAR(heavy.item<double>(), 1.0 - 1e-6, 1e-7);
}

TEST("adamw: clips the joint norm of all gradients, only above the limit") {
  at::Tensor a = at::zeros({2}).requires_grad_(), b = at::zeros({1}).requires_grad_();
  a.mutable_grad() = at::tensor({3.0f, 0.0f});
  b.mutable_grad() = at::tensor({4.0f});
  EXPECT_NEAR(clip_gradients({a, b}, 10.0).norm, 5.0, 1e-6);
  EXPECT_EQ(b.grad().item<double>(), 4.0);
  EXPECT_NEAR(clip_gradients({a, b}, 1.0).norm, 5.0, 1e-6);
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(b.grad().item<double>(), 0.8, 1e-6);
  b.mutable_grad() = at::tensor({std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(clip_gradients({a, b}, 0.1).not_finite, int64_t{1});
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.6, 1e-6);
}

TEST("batches: each epoch has its own permutation") {
  const auto first = epoch_order(20, 42, 0);
  EXPECT(first == epoch_order(20, 42, 0));
  EXPECT(first != epoch_order(20, 42, 1));
  EXPECT(first != epoch_order(20, 43, 0));
  EXPECT_EQ((std::set<int64_t>(first.begin(), first.end()).size()), size_t{20});
}

TEST("batches: samples of equal length form one part, with shorter conditions padded and masked") {
  const auto parts = make_parts({random_sample(12, 5, 1), random_sample(8, 4, 2), random_sample(12, 3, 3)},
                                sampling(), 0, kPlacement);
  EXPECT_EQ(parts.size(), size_t{2});
  EXPECT_NEAR(parts[0].weight, 8.0 / 32, 1e-12);
  EXPECT_NEAR(parts[1].weight, 24.0 / 32, 1e-12);
  EXPECT(!parts[0].batch.encoder_mask.defined());
  const FlowMatchingBatch& pair = parts[1].batch;
  EXPECT(pair.data.sizes() == at::IntArrayRef({2, 12, kTinyLatent}));
  EXPECT(pair.context.sizes() == at::IntArrayRef({2, 12, 2 * kTinyLatent}));
  EXPECT(pair.encoder_states.sizes() == at::IntArrayRef({2, 5, kTinyEncoder}));
  EXPECT(at::equal(pair.encoder_mask.sum(1), at::tensor({5, 3}, at::kLong)));
  EXPECT_EQ(pair.encoder_states[1].narrow(0, 3, 2).abs().max().item<double>(), 0.0);
}

TEST("batches: random draws depend only on micro-step and position") {
  const auto noise = [&](int64_t micro_step) {
    return make_parts({random_sample(12, 5, 1)}, sampling(), micro_step, kPlacement)[0].batch.noise;
  };
  EXPECT(at::equal(noise(3), noise(3)));
  EXPECT(!at::equal(noise(3), noise(4)));
  const auto pair = make_parts({random_sample(12, 5, 1), random_sample(12, 5, 1)}, sampling(), 3, kPlacement);
  EXPECT(at::equal(pair[0].batch.noise[0], noise(3)[0]));
  EXPECT(!at::equal(pair[0].batch.noise[0], pair[0].batch.noise[1]));
}

TEST("batches: drops conditions at the requested rate") {
  const TrainingSample sample = random_sample(2, 3, 1);
  int dropped = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const at::Tensor states = make_parts({sample}, sampling(0.15), i, kPlacement)[0].batch.encoder_states;
    if (states.eq(7.0).all().item<bool>()) {
      ++dropped;
    } else {
      EXPECT(at::equal(states[0], sample.encoder_hidden_states));
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped) / kDraws, 0.15, 0.03);
}

TEST("batches: the loss of unequal samples is weighted by length") {
  AceStep model = tiny_ace_step({});
  TrainableAdapter adapter(model.dit, Lora{.rank = 2, .alpha = 2, .dropout = 0.0}, 1);
  disturb(adapter);
  const std::vector<TrainingSample> samples = {random_sample(12, 5, 1), random_sample(7, 4, 2),
                                               random_sample(12, 3, 3)};
  const auto parts = make_parts(samples, sampling(), 5, kPlacement);
  const double together = loss_of(model, parts, 1.0);
  const at::Tensor gradient = flat_gradient(adapter);
  clear_gradients(adapter);

  // Compute the loss again, one sample at a time, with the same random draws.
  double alone = 0;
  for (const MicroBatchPart& part : parts) {
    for (int64_t i = 0; i < part.batch.data.size(0); ++i) {
      const auto row = [&](const at::Tensor& t) { return t.narrow(0, i, 1); };
      const FlowMatchingBatch& all = part.batch;
      const int64_t length = all.encoder_mask.defined() ? all.encoder_mask[i].sum().item<int64_t>() : 4;
      const at::Tensor loss =
          flow_matching_loss(model.dit, {.data = row(all.data),
                                         .noise = row(all.noise),
                                         .times = row(all.times),
                                         .context = row(all.context),
                                         .encoder_states = row(all.encoder_states).narrow(1, 0, length)}) *
          (static_cast<double>(all.data.size(1)) / (12 + 7 + 12));
      loss.backward();
      alone += loss.item<double>();
    }
  }
  EXPECT_NEAR(together, alone, 1e-5);
  EXPECT(largest_difference(gradient, flat_gradient(adapter)) < 1e-5);
}

TEST("batches: four accumulated micro-batches of one give the gradient of one batch of four") {
  AceStep model = tiny_ace_step({});
  TrainableAdapter adapter(model.dit, Lokr{.dimension = 2, .weight_decompose = true}, 1);
  disturb(adapter);
  std::vector<TrainingSample> samples;
  for (uint64_t i = 0; i < 4; ++i) samples.push_back(random_sample(10, 4, 10 * i));
  const MicroBatchPart four = make_parts(samples, sampling(), 0, kPlacement)[0];
  loss_of(model, {four}, 1.0);
  const at::Tensor together = flat_gradient(adapter);
  clear_gradients(adapter);
  for (int64_t i = 0; i < 4; ++i) {
    const auto row = [&](const at::Tensor& t) { return t.narrow(0, i, 1); };
    loss_of(model,
            {{{.data = row(four.batch.data),
               .noise = row(four.batch.noise),
               .times = row(four.batch.times),
               .context = row(four.batch.context),
               .encoder_states = row(four.batch.encoder_states)},
              1.0}},
            4.0);
  }
  EXPECT(largest_difference(together, flat_gradient(adapter)) < 1e-5);
}

TEST("trainable adapter: attaches to every attention projection only, and detaches when destroyed") {
  AceStep model = tiny_ace_step({.is_xl = true});
  {
    const TrainableAdapter adapter(model.dit, Lora{.rank = 3}, 1);
    EXPECT_EQ(adapter.modules().size(), static_cast<size_t>(8 * kTinyLayers));
    EXPECT_EQ(adapter.modules()[0].name, std::string("layers.0.self_attn.q_proj"));
    int64_t count = 0;
    for (const auto& module : adapter.modules()) count += 3 * (module.weight.size(0) + module.weight.size(1));
    EXPECT_EQ(adapter.parameter_count(), count);
  }
  for (const Projection& projection : model.dit.projections()) EXPECT(projection.linear->branches.empty());
}

TEST("trainable adapter: a new adapter keeps the output bit-equal, and training never writes model weights") {
  AceStep model = tiny_ace_step({});
  const auto part = make_parts({random_sample(12, 5, 1)}, sampling(), 0, kPlacement)[0];
  const auto loss = [&] { return flow_matching_loss(model.dit, part.batch).item<double>(); };
  const double base = loss();
  std::vector<at::Tensor> weights;
  for (const Projection& projection : model.dit.projections()) weights.push_back(projection.weight().data.clone());

  for (const AdapterDesign& design :
       {AdapterDesign(Lora{}), AdapterDesign(Lokr{.weight_decompose = false})}) {
    const TrainableAdapter adapter(model.dit, design, 1);
    EXPECT_EQ(loss(), base);
    torch::optim::AdamW optimizer = make_adamw(tensors_of(adapter.parameters()));
    for (int64_t step = 0; step < 3; ++step) {
      clear_gradients(adapter);
      loss_of(model, {part}, 1.0);
      apply_gradients(optimizer, 0.01);
    }
    EXPECT(loss() < base);
    for (const auto& projection : model.dit.projections()) EXPECT(!projection.weight().data.requires_grad());
  }
  size_t index = 0;
  for (const Projection& projection : model.dit.projections())
    EXPECT(at::equal(projection.weight().data, weights[index++]));
}

TEST("trainable adapter: has the parameter count of the published model") {
  // A 2B model has 24 layers with two attentions each. Query and output projections are 2048 x 2048, key and value
  // projections 1024 x 2048.
  const auto count = [](const AdapterDesign& design) {
    at::Generator generator = seeded_generator(1, at::kCPU);
    int64_t sum = 0;
    for (const auto& [out, modules] : {std::pair<int64_t, int64_t>{2048, 96}, {1024, 96}}) {
      const at::Tensor weight = at::empty({1}).expand({out, 2048});
      const auto add = [&](const TrainedDelta& delta) {
        for (const auto& [name, tensor] : delta.parameters()) sum += modules * tensor.numel();
      };
      if (const auto* lora = std::get_if<LoraDesign>(&design)) {
        add(TrainedLora(*lora, weight, generator));
      } else {
        add(TrainedLokr(std::get<LokrDesign>(design), weight, generator));
      }
    }
    return sum;
  };
  EXPECT_EQ(count(Lora{.rank = 8}), int64_t{5505024});
  EXPECT_EQ(count(Lokr{.weight_decompose = false}), int64_t{786432});
  EXPECT_EQ(count(Lokr{}), int64_t{1081344});
}

TEST("trainable adapter: rejects a design out of range") {
  AceStep model = tiny_ace_step({});
  EXPECT_THROWS(TrainableAdapter(model.dit, Lora{.rank = 0}, 1), "the rank of LoRA");
  EXPECT_THROWS(TrainableAdapter(model.dit, Lora{.dropout = 1.5}, 1), "the dropout of LoRA");
  EXPECT_THROWS(TrainableAdapter(model.dit, Lokr{.dimension = 0}, 1), "the dimension of LoKr");
  EXPECT_THROWS(TrainableAdapter(model.dit, Lokr{.factor = 0}, 1), "the factor of LoKr");
}

TEST("layer checkpointing: gives the same losses and gradients bit for bit, with dropout") {
  AceStep model = tiny_ace_step({});
  const auto parts = make_parts({random_sample(30, 5, 1), random_sample(30, 3, 2)}, sampling(), 0, kPlacement);
  for (const AdapterDesign& design :
       {AdapterDesign(Lora{.rank = 4, .alpha = 8, .dropout = 0.1}), AdapterDesign(Lokr{.dimension = 2})}) {
    TrainableAdapter adapter(model.dit, design, 1);
    disturb(adapter);
    adapter.set_dropout(77);
    const double loss = loss_of(model, parts, 1.0);
    const at::Tensor gradient = flat_gradient(adapter);
    clear_gradients(adapter);
    EXPECT_EQ(loss_of(model, parts, 1.0, run_layer_checkpointed), loss);
    EXPECT(at::equal(flat_gradient(adapter), gradient));
  }
}
