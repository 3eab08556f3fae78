// Merging adapters into a tiny DiT, and restoring the base weights.
#include <ATen/ATen.h>

#include <map>

#include "core/adapters/adapter.h"
#include "test/tiny_adapter.h"

using namespace carillon;
using namespace carillon::test;

namespace {

AceStep load(at::ScalarType dtype = at::kFloat) {
  return AceStep::load(write_tiny_ace_step({}), {at::kCPU, dtype}, Control());
}

/// A checkpoint in bfloat16, as models are published.
AceStep load_published(const Placement& placement) {
  const auto halve = [](Tensors& tensors) {
    for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
  };
  return AceStep::load(write_tiny_ace_step({}, halve), placement, Control());
}

ActiveAdapter acting(const Adapter& adapter, double strength) {
  return {std::make_shared<const Adapter>(adapter), strength};
}

void merge(AceStep& model, const Adapter& adapter, double strength) {
  merge_adapters(model.dit, model.decoder_weights, {acting(adapter, strength)});
}

void restore(AceStep& model) { merge_adapters(model.dit, model.decoder_weights, {}); }

std::map<std::string, at::Tensor> weights_of(Dit& dit) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& projection : dit.projections()) weights[projection.name] = projection.weight().data.clone();
  return weights;
}

/// Expects equal bytes and equal storage types, because the storage type determines the kernel.
void expect_same(const nn::Linear& found, const nn::Linear& expected) {
  EXPECT_EQ(found.parts[0].data.scalar_type(), expected.parts[0].data.scalar_type());
  EXPECT(found.parts[0].data.equal(expected.parts[0].data));
  EXPECT_EQ(found.parts[0].is_quantized(), expected.parts[0].is_quantized());
  if (expected.parts[0].is_quantized()) EXPECT(found.parts[0].scales.equal(expected.parts[0].scales));
}

/// Expects every weight to equal its counterpart in `before`. With `is_mapped`, expects it to be a view of the mapped
/// file too.
void expect_base(Dit& dit, Dit& before, bool is_mapped = true) {
  const auto found = dit.projections(), expected = before.projections();
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_same(*found[i].linear, *expected[i].linear);
    EXPECT(!found[i].linear->is_merged);
    const bool is_fused = expected[i].rows != expected[i].linear->outputs();
    if (!is_mapped || is_fused) continue;  // fused weights are copies
    EXPECT(found[i].linear->parts[0].data.data_ptr() == expected[i].linear->parts[0].data.data_ptr());
  }
}

bool equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  for (const auto& [name, weight] : a) {
    if (!weight.equal(b.at(name))) return false;
  }
  return a.size() == b.size();
}

at::Tensor velocity(const Dit& dit, at::ScalarType dtype = at::kFloat) {
  const auto input = [&](at::IntArrayRef shape, uint64_t seed) { return random_tensor(shape, seed).to(dtype); };
  return dit.velocity(input({2, 12, kTinyLatent}, 1), dit.embed_context(input({2, 12, 2 * kTinyLatent}, 2)),
                      dit.modulate(at::full({1}, 0.6)), dit.make_cross_cache(input({2, 5, kTinyEncoder}, 3)));
}

/// One adapter of every kind. Each adapter leaves out different projections.
struct Adapters {
  Adapter lora, lokr, lora_dora, lokr_dora, time;

  explicit Adapters(const Dit& dit) {
    const auto targets = adapter_targets(dit);
    const auto attention = attention_of(dit);
    const auto read = [&](const std::string& path) { return read_adapter(path, targets); };
    Tensors low_rank = lora_tensors(attention, peft_key);
    lora = read(write_peft(low_rank));
    time = read(write_peft(lora_tensors({targets.begin(), targets.begin() + 7}, peft_key)));
    Tensors kronecker;
    for (const auto& [name, out, in] : targets) {
      kronecker[lycoris_name(name) + ".lokr_w1"] = exact_values({2, 2}, 11);
      kronecker[lycoris_name(name) + ".lokr_w2"] = exact_values({out / 2, in / 2}, 12);
    }
    lokr = read(write_single(kronecker));
    for (const auto& [name, out, in] : targets) {
      kronecker[lycoris_name(name) + ".dora_scale"] = exact_values({out, 1}, 13).abs() + 1;
    }
    lokr_dora = read(write_single(kronecker));
    for (const auto& [name, out, in] : attention) {
      low_rank["base_model.model." + name + ".lora_magnitude_vector"] = exact_values({out}, 14).abs() + 1;
    }
    lora_dora = read(write_peft(low_rank));
  }

  std::vector<const Adapter*> all() const { return {&lora, &lokr, &lora_dora, &lokr_dora, &time}; }
};

/// The model with the adapter attached as branches, as in training: y = W * x + (W' - W) * x.
AceStep with_branches(const Adapter& adapter) {
  AceStep model = load();
  std::map<std::string, const AdapterModule*> modules;
  for (const auto& module : adapter.modules) modules[module.projection] = &module;
  for (const auto& projection : model.dit.projections()) {
    if (modules.count(projection.name) == 0) continue;
    const at::Tensor base = projection.weight().data.clone();
    const at::Tensor delta = modules.at(projection.name)->adapt(base, 1) - base;
    projection.linear->branches.push_back(
        {projection.first_row, projection.rows, [delta](const at::Tensor& x) { return at::linear(x, delta); }});
  }
  model.dit.refresh();
  return model;
}

}  // namespace

TEST("adapter merge: merged weights give the output of weights plus adapter branch") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const at::Tensor base = velocity(model.dit);
  for (const Adapter* adapter : adapters.all()) {
    merge(model, *adapter, 1);
    const at::Tensor merged = velocity(model.dit), beside = velocity(with_branches(*adapter).dit);
    EXPECT(largest_difference(merged, beside) < 1e-5 * std::max(1.0, beside.abs().max().item<double>()));
    EXPECT(largest_difference(merged, base) > 1e-3);
    restore(model);
  }
}

TEST("adapter merge: restores base weights bit for bit after any sequence of merges, in float32 and bfloat16") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    AceStep model = load(dtype);
    const Adapters adapters(model.dit);
    const auto base = weights_of(model.dit);
    const at::Tensor before = velocity(model.dit, dtype);
    for (const Adapter* adapter : adapters.all()) {
      for (const double strength : {1.0, 0.3, 0.0, 0.7}) {
        merge(model, *adapter, strength);
        EXPECT_EQ(equal(weights_of(model.dit), base), strength == 0.0);
      }
      restore(model);
      EXPECT(equal(weights_of(model.dit), base));
      EXPECT(velocity(model.dit, dtype).equal(before));
    }
  }
}

TEST("adapter merge: result does not depend on earlier merges") {
  AceStep model = load(), fresh = load();
  const Adapters adapters(model.dit);
  merge(model, adapters.lokr_dora, 1);
  merge(model, adapters.lokr_dora, 0.25);
  merge(fresh, adapters.lokr_dora, 0.25);
  EXPECT(equal(weights_of(model.dit), weights_of(fresh.dit)));
}

TEST("adapter merge: strength 0.5 gives the mean of base and adapted weights, also with DoRA") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const auto base = weights_of(model.dit);
  for (const Adapter* adapter : adapters.all()) {
    merge(model, *adapter, 1);
    const auto full = weights_of(model.dit);
    merge(model, *adapter, 0.5);
    for (const auto& [name, weight] : weights_of(model.dit)) {
      EXPECT(largest_difference(weight, (base.at(name) + full.at(name)) / 2) < 1e-6);
    }
    restore(model);
  }
}

TEST("adapter merge: adds in float32 and rounds once to bfloat16") {
  AceStep model = load(at::kBFloat16);
  const Adapters adapters(model.dit);
  const auto base = weights_of(model.dit);
  merge(model, adapters.lokr, 0.6);
  const auto merged = weights_of(model.dit);
  for (const auto& module : adapters.lokr.modules) {
    const at::Tensor expected = module.adapt(base.at(module.projection).to(at::kFloat), 0.6).to(at::kBFloat16);
    EXPECT(merged.at(module.projection).equal(expected));
  }
}

TEST("adapter merge: an adapter of one projection changes only its rows of a fused weight") {
  AceStep model = load();
  const auto base = weights_of(model.dit);
  const std::string name = "layers.1.cross_attn.v_proj";
  const Adapter adapter =
      read_adapter(write_peft(lora_tensors({{name, 16, 32}}, peft_key)), adapter_targets(model.dit));
  merge(model, adapter, 1);
  for (const auto& [projection, weight] : weights_of(model.dit)) {
    EXPECT_EQ(weight.equal(base.at(projection)), projection != name);
  }
}

TEST("adapter merge: recomputes tensors derived from time embeddings") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const at::Tensor times = at::tensor({0.3f});
  const at::Tensor before = model.dit.modulate(times).layers;
  merge(model, adapters.time, 1);
  EXPECT(largest_difference(model.dit.modulate(times).layers, model.dit.modulate(times, times).layers) < 1e-5);
  EXPECT(largest_difference(model.dit.modulate(times).layers, before) > 1e-3);
  restore(model);
  EXPECT(model.dit.modulate(times).layers.equal(before));
}

TEST("adapter merge: restores the base in the storage type in which it was loaded") {
  using enum WeightForm;
  const Placement placements[] = {{at::kCPU, at::kFloat, kDense},     {at::kCPU, at::kBFloat16, kDense},
                                  {at::kCPU, at::kFloat, kStored},    {at::kCPU, at::kBFloat16, kStored},
                                  {at::kCPU, at::kFloat, kInt8},      {at::kCPU, at::kFloat, kInt4},
                                  {at::kCPU, at::kBFloat16, kInt8}};
  for (const Placement& placement : placements) {
    const bool is_mapped = placement.weights == kDense && placement.dtype == at::kFloat;
    AceStep model = is_mapped ? load() : load_published(placement);
    Dit before = model.dit;  // shares the weights of `model`
    const Adapters adapters(model.dit);
    const at::Tensor velocity_before = velocity(model.dit, placement.dtype);
    for (const Adapter* adapter : adapters.all()) {
      merge(model, *adapter, 1);
      EXPECT(!velocity(model.dit, placement.dtype).equal(velocity_before));
      merge(model, *adapter, 0);
      expect_base(model.dit, before, is_mapped);
      EXPECT(velocity(model.dit, placement.dtype).equal(velocity_before));
      merge_adapters(model.dit, model.decoder_weights, {acting(*adapter, -0.5), acting(adapters.lokr, 2)});
      restore(model);
      expect_base(model.dit, before, is_mapped);
    }
  }
}

TEST("adapter merge: restores weights that only the previous adapter changed") {
  AceStep model = load(), fresh = load();
  const Adapters adapters(model.dit);
  merge(model, adapters.time, 1);
  merge(model, adapters.lora, 1);
  merge(fresh, adapters.lora, 1);
  EXPECT(equal(weights_of(model.dit), weights_of(fresh.dit)));
}

TEST("adapter merge: sums the scaled changes of several adapters (LoRA, LoKr, DoRA)") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const auto base = weights_of(model.dit);
  const std::pair<const Adapter*, double> all[] = {{&adapters.lora, 0.5},
                                                   {&adapters.lokr, -1},
                                                   {&adapters.lora_dora, 1},
                                                   {&adapters.lokr_dora, 2},
                                                   {&adapters.time, 1}};
  auto expected = base;
  std::vector<ActiveAdapter> together;
  for (const auto& [adapter, strength] : all) {
    merge(model, *adapter, strength);
    for (const auto& [name, weight] : weights_of(model.dit))
      expected.at(name) = expected.at(name) + weight - base.at(name);
    together.push_back(acting(*adapter, strength));
  }
  merge_adapters(model.dit, model.decoder_weights, together);
  for (const auto& [name, weight] : weights_of(model.dit)) {
    EXPECT(largest_difference(weight, expected.at(name)) < 1e-4);
  }
}

TEST("adapter merge: a failed merge restores the base model") {
  AceStep model = load();
  Dit before = model.dit;
  const Adapters adapters(model.dit);
  merge(model, adapters.time, 1);
  Adapter broken = adapters.lora;
  broken.modules.back().w2.left = at::zeros({3, kTinyRank});
  EXPECT_THROWS(merge(model, broken, 1), "");
  expect_base(model.dit, before);
}

TEST("adapter merge: a module that adds zero leaves its weight a view of the mapped file") {
  AceStep model = load();
  Dit before = model.dit;
  const std::string o = "layers.0.self_attn.o_proj";
  Tensors untrained;
  untrained[lycoris_name(o) + ".lokr_w1"] = at::ones({4, 4});
  untrained[lycoris_name(o) + ".lokr_w2"] = at::zeros({8, 8});
  merge(model, read_adapter(write_single(untrained), adapter_targets(model.dit)), 1);
  expect_base(model.dit, before);
}
