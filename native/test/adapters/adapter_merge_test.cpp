// Adapters merged into a tiny DiT, and the base weights after them.
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

std::map<std::string, at::Tensor> weights_of(Dit& dit) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& projection : dit.projections()) weights[projection.name] = projection.weight().data.clone();
  return weights;
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
                      dit.modulate(at::full({1}, 0.6)), dit.attend_to(input({2, 5, kTinyEncoder}, 3)));
}

/// Adapters of every kind, each for all projections but as many as its kind leaves out.
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

/// The model with the adapter beside its weights, as training runs it: y = W x + (W' - W) x.
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

TEST("adapter merge: merged weights do what the adapter does beside them") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const at::Tensor base = velocity(model.dit);
  for (const Adapter* adapter : adapters.all()) {
    merge_adapter(model.dit, model.decoder_weights, *adapter, 1);
    const at::Tensor merged = velocity(model.dit), beside = velocity(with_branches(*adapter).dit);
    EXPECT(largest_difference(merged, beside) < 1e-5 * std::max(1.0, beside.abs().max().item<double>()));
    EXPECT(largest_difference(merged, base) > 1e-3);
    restore_base(model.dit, model.decoder_weights, *adapter);
  }
}

TEST("adapter merge: the base weights come back bit for bit, after any sequence, in float32 and bfloat16") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    AceStep model = load(dtype);
    const Adapters adapters(model.dit);
    const auto base = weights_of(model.dit);
    const at::Tensor before = velocity(model.dit, dtype);
    for (const Adapter* adapter : adapters.all()) {
      for (const double strength : {1.0, 0.3, 0.0, 0.7}) {
        merge_adapter(model.dit, model.decoder_weights, *adapter, strength);
        EXPECT_EQ(equal(weights_of(model.dit), base), strength == 0.0);
      }
      restore_base(model.dit, model.decoder_weights, *adapter);
      EXPECT(equal(weights_of(model.dit), base));
      EXPECT(velocity(model.dit, dtype).equal(before));
    }
  }
}

TEST("adapter merge: what is merged does not depend on what was merged before") {
  AceStep model = load(), fresh = load();
  const Adapters adapters(model.dit);
  merge_adapter(model.dit, model.decoder_weights, adapters.lokr_dora, 1);
  merge_adapter(model.dit, model.decoder_weights, adapters.lokr_dora, 0.25);
  merge_adapter(fresh.dit, fresh.decoder_weights, adapters.lokr_dora, 0.25);
  EXPECT(equal(weights_of(model.dit), weights_of(fresh.dit)));
}

TEST("adapter merge: half a strength is half the way, for DoRA too") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const auto base = weights_of(model.dit);
  for (const Adapter* adapter : adapters.all()) {
    merge_adapter(model.dit, model.decoder_weights, *adapter, 1);
    const auto full = weights_of(model.dit);
    merge_adapter(model.dit, model.decoder_weights, *adapter, 0.5);
    for (const auto& [name, weight] : weights_of(model.dit)) {
      EXPECT(largest_difference(weight, (base.at(name) + full.at(name)) / 2) < 1e-6);
    }
    restore_base(model.dit, model.decoder_weights, *adapter);
  }
}

TEST("adapter merge: bfloat16 weights are the float32 sum, rounded once") {
  AceStep model = load(at::kBFloat16);
  const Adapters adapters(model.dit);
  const auto base = weights_of(model.dit);
  merge_adapter(model.dit, model.decoder_weights, adapters.lokr, 0.6);
  const auto merged = weights_of(model.dit);
  for (const auto& module : adapters.lokr.modules) {
    const at::Tensor expected = module.adapt(base.at(module.projection).to(at::kFloat), 0.6).to(at::kBFloat16);
    EXPECT(merged.at(module.projection).equal(expected));
  }
}

TEST("adapter merge: only what the adapter names is changed, in its rows of a fused weight") {
  AceStep model = load();
  const auto base = weights_of(model.dit);
  const std::string name = "layers.1.cross_attn.v_proj";
  const Adapter adapter =
      read_adapter(write_peft(lora_tensors({{name, 16, 32}}, peft_key)), adapter_targets(model.dit));
  merge_adapter(model.dit, model.decoder_weights, adapter, 1);
  for (const auto& [projection, weight] : weights_of(model.dit)) {
    EXPECT_EQ(weight.equal(base.at(projection)), projection != name);
  }
}

TEST("adapter merge: what derives from the time embeddings is renewed") {
  AceStep model = load();
  const Adapters adapters(model.dit);
  const at::Tensor times = at::tensor({0.3f});
  const at::Tensor before = model.dit.modulate(times).layers;
  merge_adapter(model.dit, model.decoder_weights, adapters.time, 1);
  EXPECT(largest_difference(model.dit.modulate(times).layers, model.dit.modulate(times, times).layers) < 1e-5);
  EXPECT(largest_difference(model.dit.modulate(times).layers, before) > 1e-3);
  restore_base(model.dit, model.decoder_weights, adapters.time);
  EXPECT(model.dit.modulate(times).layers.equal(before));
}

TEST("adapter merge: without an adapter, and for modules that were not trained, weights lie on the mapped file") {
  AceStep model = load();
  const auto addresses = [&] {
    std::map<std::string, const void*> found;
    for (const auto& projection : model.dit.projections())
      found[projection.name] = projection.linear->weight.data.data_ptr();
    return found;
  };
  const auto before = addresses();
  const Adapters adapters(model.dit);
  for (const Adapter* adapter : adapters.all()) {
    merge_adapter(model.dit, model.decoder_weights, *adapter, 1);
    EXPECT(addresses() != before);
    restore_base(model.dit, model.decoder_weights, *adapter);
    EXPECT(addresses() == before);
  }
  const std::string o = "layers.0.self_attn.o_proj";
  Tensors untrained;
  untrained[lycoris_name(o) + ".lokr_w1"] = at::ones({4, 4});
  untrained[lycoris_name(o) + ".lokr_w2"] = at::zeros({8, 8});
  const Adapter adapter = read_adapter(write_single(untrained), adapter_targets(model.dit));
  merge_adapter(model.dit, model.decoder_weights, adapter, 1);
  EXPECT(addresses() == before);
}
