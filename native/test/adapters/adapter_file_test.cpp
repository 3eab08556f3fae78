// Tests reading the adapter files of all supported programs, for a tiny DiT.
#include "core/adapters/adapter.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "core/runtime/error.h"
#include "test/tiny_adapter.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const AceStep& model() {
  static const AceStep loaded = tiny_ace_step({});
  return loaded;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Applies the adapter to a zero weight. Without DoRA magnitudes, the result is the adapter's delta.
at::Tensor delta_of(const Adapter& adapter, const std::string& projection) {
  const auto module = std::find_if(adapter.modules.begin(), adapter.modules.end(),
                                   [&](const AdapterModule& each) { return each.projection == projection; });
  EXPECT(module != adapter.modules.end());
  const int64_t out = module->w1 ? module->w1->rows() * module->w2.rows() : module->w2.rows();
  const int64_t in = module->w1 ? module->w1->columns() * module->w2.columns() : module->w2.columns();
  return module->adapt(at::zeros({out, in}), 1);
}

void expect_same(const Adapter& adapter, const Adapter& reference) {
  EXPECT_EQ(adapter.modules.size(), reference.modules.size());
  EXPECT_EQ(adapter.unmatched_tensors.size(), size_t{0});
  for (const auto& module : reference.modules) {
    EXPECT(delta_of(adapter, module.projection).equal(delta_of(reference, module.projection)));
  }
}

const std::vector<AdapterTarget>& attention() {
  static const std::vector<AdapterTarget> targets = attention_of(model().dit);
  return targets;
}

Tensors peft_tensors() { return lora_tensors(attention(), peft_key); }

/// Writes the PEFT adapter after `change` has altered its tensors.
std::string changed_peft(const std::function<void(Tensors&)>& change) {
  Tensors tensors = peft_tensors();
  change(tensors);
  return write_peft(tensors);
}

const std::string kK = "layers.1.cross_attn.k_proj";

/// Writes a LoKr of one module with some of lokr_w1, _w1_a, _w1_b, _w2, _w2_a, _w2_b, alpha, dora_scale.
std::string write_lokr(const std::string& module, const Tensors& parts, const std::string& config = "") {
  Tensors tensors;
  for (const auto& [part, tensor] : parts) tensors[lycoris_name(module) + "." + part] = tensor;
  return write_single(tensors, config.empty() ? "{}" : R"({"lokr_config": ")" + config + R"("})");
}

const at::Tensor kW1 = exact_values({4, 4}, 1), kW2 = exact_values({8, 8}, 2);  // factors of a weight [32, 32]
const at::Tensor kW1Left = exact_values({4, 2}, 3), kW1Right = exact_values({2, 4}, 4);
const at::Tensor kW2Left = exact_values({8, 2}, 5), kW2Right = exact_values({2, 8}, 6);
const at::Tensor kAlpha = at::scalar_tensor(8.0);

}  // namespace

TEST("adapter file: computes alpha / r * B A for every module of a PEFT folder") {
  const Tensors tensors = peft_tensors();
  const Adapter adapter = read(write_peft(tensors));
  EXPECT(adapter.kind == Adapter::Kind::kLora);
  EXPECT_EQ(adapter.modules.size(), size_t{16});  // four projections in each of four attentions
  const at::Tensor expected = at::matmul(tensors.at(peft_key(kQ, "lora_B")), tensors.at(peft_key(kQ, "lora_A"))) * 2.0;
  EXPECT(delta_of(adapter, kQ).equal(expected));
}

TEST("adapter file: reads the same LoRA from every naming scheme") {
  const Adapter reference = read(write_peft(peft_tensors()));
  const auto dotted = [](const std::string& prefix, const std::string& ending) {
    return [=](const std::string& module, const std::string& part) { return prefix + module + "." + part + ending; };
  };
  const auto diffusers = [](const std::string& module, const std::string& part) {
    std::string name = module;
    for (const char* letter : {"q", "k", "v"}) {
      name = replaced(name, std::string(letter) + "_proj", std::string("to_") + letter);
    }
    return "transformer." + replaced(name, "o_proj", "to_out.0") + "." + part + ".weight";
  };
  const auto old_names = [](const std::string& prefix, bool is_flat) {
    return [=](std::string module, const std::string& part) {
      if (is_flat) std::replace(module.begin(), module.end(), '.', '_');
      return prefix + module + (part == "lora_A" ? ".lora_down" : ".lora_up") + ".weight";
    };
  };
  const std::function<std::string(const std::string&, const std::string&)> keys[] = {
      dotted("base_model.model.", ".default.weight"),
      dotted("base_model.model.decoder.", ".weight"),
      dotted("", ".weight"),
      dotted("", ""),
      dotted("decoder.", ".weight"),
      dotted("diffusion_model.", ".weight"),
      dotted("diffusion_model.decoder.", ".weight"),
      dotted("model.diffusion_model.decoder.", ".weight"),
      diffusers,
      old_names("diffusion_model.", false),
      old_names("lora_unet_", true),
      old_names("lora_unet_decoder_", true)};
  for (const auto& key : keys) expect_same(read(write_peft(lora_tensors(attention(), key))), reference);
}

TEST("adapter file: reads the same LoRA by folder, adapter/ subfolder or file, with and without config") {
  const std::string folder = write_peft(peft_tensors());
  const Adapter reference = read(folder);
  expect_same(read(folder + "/adapter_model.safetensors"), reference);
  const std::string parent = fixture_directory();
  std::filesystem::rename(folder, parent + "/adapter");
  expect_same(read(parent), reference);

  Tensors tensors = peft_tensors();
  for (const auto& target : attention()) tensors["base_model.model." + target.name + ".alpha"] = at::scalar_tensor(6.0);
  const std::string single = write_single(tensors);
  expect_same(read(single), reference);
  expect_same(read(std::filesystem::path(single).parent_path().string()), reference);
}

TEST("adapter file: reads the same LoRA from every dtype") {
  const Adapter reference = read(write_peft(peft_tensors()));
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const auto convert = [&](Tensors& tensors) {
      for (auto& [name, tensor] : tensors) tensor = tensor.to(type);
    };
    expect_same(read(changed_peft(convert)), reference);
  }
}

TEST("adapter file: takes alpha from the tensor, else alpha_pattern, else lora_alpha, else the rank") {
  const auto scale_of = [](const std::string& path, const std::string& projection) {
    for (const auto& module : read(path).modules) {
      if (module.projection == projection) return module.scale;
    }
    return 0.0;
  };
  const Tensors tensors = peft_tensors();
  const std::string pattern = R"(, "alpha_pattern": {"self_attn.q_proj": 12, "layers.1.cross_attn.k_proj": 3})";
  const std::string patterned = write_peft(tensors, peft_config(pattern));
  EXPECT_EQ(scale_of(patterned, kQ), 4.0);
  EXPECT_EQ(scale_of(patterned, kK), 1.0);
  EXPECT_EQ(scale_of(patterned, "layers.0.cross_attn.k_proj"), 2.0);
  EXPECT_EQ(scale_of(write_single(tensors), kQ), 1.0);
  EXPECT_NEAR(scale_of(write_peft(tensors, peft_config(R"(, "use_rslora": true)")), kQ), 6 / std::sqrt(3.0), 1e-12);
  Tensors own = tensors;
  own["base_model.model." + kQ + ".alpha"] = at::tensor({1.5f});
  EXPECT_EQ(scale_of(write_peft(own, peft_config(pattern)), kQ), 0.5);
}

TEST("adapter file: takes the rank from tensor shapes and ignores the config") {
  Tensors tensors;
  tensors[peft_key(kQ, "lora_A")] = exact_values({12, 32}, 1);
  tensors[peft_key(kQ, "lora_B")] = exact_values({32, 12}, 2);
  EXPECT_EQ(read(write_peft(tensors)).modules.at(0).scale, 0.5);
}

TEST("adapter file: reads a PEFT LoRA with magnitude vectors as DoRA") {
  const at::Tensor norms = at::arange(1, 33, at::kFloat), weight = exact_values({32, 32}, 9);
  const Tensors plain = lora_tensors({{kQ, 32, 32}}, peft_key);
  const at::Tensor expected =
      dora_weight(weight + delta_of(read(write_peft(plain)), kQ), norms.view({32, 1}), kLoraNormEpsilon);
  for (const char* ending : {".lora_magnitude_vector", ".lora_magnitude_vector.default.weight"}) {
    Tensors tensors = plain;
    tensors["base_model.model." + kQ + ending] = norms;
    const Adapter adapter = read(write_peft(tensors, peft_config(R"(, "use_dora": true)")));
    EXPECT(adapter.modules.at(0).adapt(weight, 1).equal(expected));
  }
  EXPECT_THROWS(read(write_peft(plain, peft_config(R"(, "use_dora": true)"))), kQ + ".magnitude' is missing");
}

TEST("adapter file: scales LoKr by alpha / rank, or by 1 if neither factor is decomposed") {
  const at::Tensor w1 = at::matmul(kW1Left, kW1Right), w2 = at::matmul(kW2Left, kW2Right);
  const Tensors whole_w1 = {{"lokr_w1", kW1}}, whole_w2 = {{"lokr_w2", kW2}};
  const Tensors product_w1 = {{"lokr_w1_a", kW1Left}, {"lokr_w1_b", kW1Right}};
  const Tensors product_w2 = {{"lokr_w2_a", kW2Left}, {"lokr_w2_b", kW2Right}};
  const auto delta = [](Tensors first, const Tensors& second) {
    first.insert(second.begin(), second.end());
    first["alpha"] = kAlpha;
    const Adapter adapter = read(write_lokr(kQ, first));
    EXPECT(adapter.kind == Adapter::Kind::kLokr);
    return delta_of(adapter, kQ);
  };
  EXPECT(delta(whole_w1, whole_w2).equal(at::kron(kW1, kW2)));
  EXPECT(delta(product_w1, whole_w2).equal(at::kron(w1, kW2) * 4));
  EXPECT(delta(whole_w1, product_w2).equal(at::kron(kW1, w2) * 4));
  EXPECT(delta(product_w1, product_w2).equal(at::kron(w1, w2) * 4));
}

TEST("adapter file: takes alpha of a LoKr without alpha tensors from the metadata, else from the rank") {
  const Tensors parts = {{"lokr_w1", kW1}, {"lokr_w2_a", kW2Left}, {"lokr_w2_b", kW2Right}};
  EXPECT_EQ(read(write_lokr(kQ, parts, R"({\"linear_dim\": 2, \"linear_alpha\": 6})")).modules.at(0).scale, 3.0);
  EXPECT_EQ(read(write_lokr(kQ, parts)).modules.at(0).scale, 1.0);
  EXPECT_THROWS(read(write_lokr(kQ, parts, "{")), "lokr_config");
}

TEST("adapter file: the shape of the magnitude decides whether DoRA of a LoKr scales rows or columns") {
  const at::Tensor weight = exact_values({32, 32}, 8), changed = weight + at::kron(kW1, kW2);
  const at::Tensor norms = at::arange(1, 33, at::kFloat);
  const auto adapted = [&](const at::Tensor& magnitude) {
    const std::string path = write_lokr(kQ, {{"lokr_w1", kW1}, {"lokr_w2", kW2}, {"dora_scale", magnitude}});
    return read(path).modules.at(0).adapt(weight, 1);
  };
  EXPECT(largest_difference(row_norms(adapted(norms.view({32, 1}))), norms.view({32, 1})) < 1e-4);
  EXPECT(adapted(norms).equal(adapted(norms.view({32, 1}))));
  EXPECT(largest_difference(row_norms(adapted(norms.view({1, 32})).t()), norms.view({32, 1})) < 1e-4);
}

TEST("adapter file: LyCORIS DoRA uses the given epsilon, PEFT DoRA ignores it") {
  const at::Tensor weight = exact_values({32, 32}, 8), norms = at::arange(1, 33, at::kFloat);
  const auto adapted = [&](const std::string& path, double epsilon) {
    return read_adapter(path, adapter_targets(model().dit), epsilon).modules.at(0).adapt(weight, 1);
  };
  Tensors lora = lora_tensors({{kQ, 32, 32}}, peft_key);
  const at::Tensor lora_changed = weight + delta_of(read(write_peft(lora)), kQ);
  lora["base_model.model." + kQ + ".dora_scale"] = norms.view({32, 1});
  const std::string lokr = write_lokr(kQ, {{"lokr_w1", kW1}, {"lokr_w2", kW2}, {"dora_scale", norms}});
  for (const auto& [path, changed] : {std::pair(lokr, weight + at::kron(kW1, kW2)), {write_peft(lora), lora_changed}}) {
    const at::Tensor plain = adapted(path, kLokrNormEpsilon), small = adapted(path, kLokrNormEpsilonBfloat16);
    const at::Tensor shrunk = row_norms(changed) / (row_norms(changed) + 0.0078125);
    EXPECT(largest_difference(small, plain * shrunk) < 1e-5);
    EXPECT(largest_difference(small, plain) > 1e-3);
  }
  lora.erase("base_model.model." + kQ + ".dora_scale");
  lora["base_model.model." + kQ + ".lora_magnitude_vector"] = norms;
  const std::string peft = write_peft(lora, peft_config(R"(, "use_dora": true)"));
  EXPECT(adapted(peft, kLokrNormEpsilonBfloat16).equal(adapted(peft, kLokrNormEpsilon)));
}

TEST("adapter file: finds lokr_weights.safetensors in a folder") {
  const std::string folder = fixture_directory();
  const Tensors tensors = {{lycoris_name(kQ) + ".lokr_w1", kW1}, {lycoris_name(kQ) + ".lokr_w2", kW2}};
  write_safetensors(folder + "/lokr_weights.safetensors", tensors);
  write_safetensors(folder + "/training_state.safetensors", {{"exp_avg", kW1}});
  EXPECT_EQ(read(folder).modules.at(0).projection, kQ);
}

TEST("adapter file: of several files in a folder, picks the one with lokr_config in its metadata") {
  const std::string folder = fixture_directory();
  const Tensors tensors = {{lycoris_name(kQ) + ".lokr_w1", kW1}, {lycoris_name(kQ) + ".lokr_w2", kW2}};
  write_safetensors(folder + "/a.safetensors", {{"exp_avg", kW1}});
  write_safetensors(folder + "/c.safetensors", peft_tensors());
  EXPECT_THROWS(read(folder), "holds 2 .safetensors files, 0 of them");
  write_safetensors(folder + "/b.safetensors", tensors, R"({"lokr_config": "{}"})");
  EXPECT(read(folder).kind == Adapter::Kind::kLokr);
  write_safetensors(folder + "/d.safetensors", tensors, R"({"lokr_config": "{}"})");
  EXPECT_THROWS(read(folder), "holds 4 .safetensors files, 2 of them with lokr_config; name one of them, such as " +
                                  folder + "/a.safetensors");
}

TEST("adapter file: lists tensors without a matching projection, except modules that add zero") {
  Tensors tensors = {{lycoris_name(kQ) + ".lokr_w1", kW1}, {lycoris_name(kQ) + ".lokr_w2", kW2}};
  tensors["lycoris_proj_in_1.lokr_w1"] = kW1;
  tensors["lycoris_proj_in_1.lokr_w2"] = at::zeros({8, 3, 2});
  tensors["lycoris_proj_in_1.dora_scale"] = at::ones({32, 1, 1});
  tensors["lycoris_layers_7_mlp_up_proj.lokr_w1"] = kW1;
  tensors["lycoris_layers_7_mlp_up_proj.lokr_w2"] = kW2;
  tensors["emb.vector"] = kW1;
  const Adapter adapter = read(write_single(tensors));
  EXPECT_EQ(adapter.modules.size(), size_t{1});
  EXPECT((adapter.unmatched_tensors == std::vector<std::string>{"emb.vector", "lycoris_layers_7_mlp_up_proj.lokr_w1",
                                                                "lycoris_layers_7_mlp_up_proj.lokr_w2"}));
}

TEST("adapter file: does not match encoder layers with DiT layers") {
  const auto encoder_key = [](const std::string& module, const std::string& part) {
    return "encoder.lyric_encoder." + module + "." + part + ".weight";
  };
  EXPECT_THROWS(read(write_peft(lora_tensors(attention(), encoder_key))), "another model");
}

TEST("adapter file: rejects an adapter of another model and says so") {
  const AceStep other = tiny_ace_step({.is_xl = true});
  const std::string path = write_peft(lora_tensors(attention_of(other.dit), peft_key));
  EXPECT_THROWS(read(path), "layers.0.cross_attn.k_proj of this model has [16, 32]: the adapter was made for another");
  EXPECT_EQ(read_adapter(path, adapter_targets(other.dit)).modules.size(), size_t{16});
}

TEST("adapter file: names the damaged tensor") {
  const std::string a = peft_key(kQ, "lora_A"), b = peft_key(kQ, "lora_B");
  const std::pair<std::function<void(Tensors&)>, std::string> damages[] = {
      {[&](Tensors& tensors) { tensors[a][0][5] = std::nan(""); }, a + "' contains NaN or infinity"},
      {[&](Tensors& tensors) { tensors[b][0][0] = INFINITY; }, b + "' contains NaN or infinity"},
      {[&](Tensors& tensors) { tensors.erase(b); }, kQ + ".lora_B' is missing"},
      {[&](Tensors& tensors) { tensors[a] = tensors[a].to(at::kLong); }, "is not floating-point"},
      {[&](Tensors& tensors) { tensors[a] = at::zeros({2, 32}); }, "the ranks differ"},
      {[&](Tensors& tensors) { tensors[a] = at::zeros({32}); }, "expected a matrix"},
      {[&](Tensors& tensors) { tensors[a] = at::zeros({0, 32}); }, "is empty"},
      {[&](Tensors& tensors) { tensors["base_model.model." + kQ + ".alpha"] = at::ones({2}); }, "expected []"},
      {[&](Tensors& tensors) { tensors["decoder." + kQ + ".lora_A.weight"] = tensors[a]; }, "is a duplicate"},
      {[&](Tensors& tensors) { tensors["base_model.model." + kQ + ".lora_A"] = tensors[a]; }, "duplicates '"}};
  for (const auto& [change, message] : damages) {
    EXPECT_THROWS(read(changed_peft(change)), message);
  }
  const Tensors lokr = {{"lokr_w1", kW1}, {"lokr_w2_a", kW2Left}};
  EXPECT_THROWS(read(write_lokr(kQ, lokr)), lycoris_name(kQ) + ".lokr_w2_b' is missing");
  EXPECT_THROWS(read(write_lokr(kQ, {{"lokr_w2", kW2}})), lycoris_name(kQ) + ".lokr_w1' is missing");
  const Tensors tucker = {{"lokr_w1", kW1}, {"lokr_w2", kW2}, {"lokr_t2", kW2}};
  EXPECT_THROWS(read(write_lokr(kQ, tucker)), "lokr_t2' is for a convolution");
  const Tensors magnitude = {{"lokr_w1", kW1}, {"lokr_w2", kW2}, {"dora_scale", at::ones({31, 1})}};
  EXPECT_THROWS(read(write_lokr(kQ, magnitude)), "dora_scale' has shape [31, 1], expected [32, 1] or [1, 32]");
}

TEST("adapter file: lists the searched paths if there is no adapter") {
  const std::string folder = write_peft(peft_tensors());
  write_file(folder + "/adapter_config.json", R"({"peft_type": "VERA"})");
  EXPECT_THROWS(read(folder), "peft_type is VERA");
  write_file(folder + "/adapter_config.json", "{}");
  EXPECT_THROWS(read(folder), "peft_type");
  std::filesystem::remove(folder + "/adapter_config.json");
  EXPECT_THROWS(read(folder), "there is no adapter_config.json");
  write_file(folder + "/adapter_config.json", peft_config());
  std::filesystem::remove(folder + "/adapter_model.safetensors");
  EXPECT_THROWS(read(folder), "there is no adapter_model.safetensors or adapter_model.bin");
  EXPECT_THROWS(read(folder + "/absent"), "there is no such file or folder");
  EXPECT_THROWS(read(fixture_directory()), "no adapter found");
  const std::string text = fixture_directory() + "/notes.txt";
  write_file(text, "notes");
  EXPECT_THROWS(read(text), "adapters are read from .safetensors and .bin files");
  const std::string broken = write_single(peft_tensors());
  std::filesystem::resize_file(broken, 3000);
  EXPECT_THROWS(read(broken), broken);
  EXPECT_THROWS(read(write_single({{"weight", kW1}})), "holds no adapter");
}
