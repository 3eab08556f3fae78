// Reads LoHa, IA3, adapters in pickles and files of other kinds for a tiny DiT.
#include <ATen/ATen.h>

#include <filesystem>

#include "core/adapters/adapter.h"
#include "core/runtime/error.h"
#include "test/tiny_adapter.h"

using namespace carillon;
using namespace carillon::test;
using namespace std::string_literals;

namespace {

const std::string kGate = "layers.1.mlp.gate_proj";  // [48, 32]

const at::Tensor kWeight = exact_values({32, 32}, 8);

/// Applies the only module of a file to kWeight.
at::Tensor adapted(const std::string& path, double strength = 1) {
  const Adapter adapter = read(path);
  EXPECT_EQ(adapter.modules.size(), size_t{1});
  return adapter.modules[0].adapt(kWeight, strength);
}

/// Writes a file that contains these tensors of module kQ, with LyCORIS names.
std::string write_parts(const Tensors& parts) {
  Tensors tensors;
  for (const auto& [part, tensor] : parts) tensors[lycoris_name(kQ) + "." + part] = tensor;
  return write_single(tensors);
}

/// Matrix product in plain loops.
at::Tensor plain_product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor result = at::zeros({a.size(0), b.size(1)});
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(1); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.size(1); ++k) sum += a[i][k].item<double>() * b[k][j].item<double>();
      result[i][j] = sum;
    }
  }
  return result;
}

const Tensors kLoha = {{"hada_w1_a", exact_values({32, 2}, 1)},
                       {"hada_w1_b", exact_values({2, 32}, 2)},
                       {"hada_w2_a", exact_values({32, 2}, 3)},
                       {"hada_w2_b", exact_values({2, 32}, 4)}};

Tensors with(Tensors tensors, const Tensors& more) {
  for (const auto& [name, tensor] : more) tensors[name] = tensor;
  return tensors;
}

}  // namespace

TEST("adapter kinds: LoHa adds alpha / rank times the elementwise product of two low-rank matrices") {
  const at::Tensor change = plain_product(kLoha.at("hada_w1_a"), kLoha.at("hada_w1_b")) *
                            plain_product(kLoha.at("hada_w2_a"), kLoha.at("hada_w2_b"));
  EXPECT(read(write_parts(kLoha)).kind == AdapterKind::kLoha);
  EXPECT(largest_difference(adapted(write_parts(kLoha)), kWeight + change) < 1e-6);
  const std::string scaled = write_parts(with(kLoha, {{"alpha", at::scalar_tensor(1.0)}}));
  EXPECT(largest_difference(adapted(scaled), kWeight + change * 0.5) < 1e-6);
  EXPECT(largest_difference(adapted(scaled, 0.5), kWeight + change * 0.25) < 1e-6);
  EXPECT(adapted(scaled, 0).equal(kWeight));
}

TEST("adapter kinds: LoHa of PEFT takes alpha from its config") {
  Tensors tensors;
  for (const auto& [part, tensor] : kLoha) tensors["base_model.model." + kQ + "." + part] = tensor;
  const std::string config = R"({"peft_type": "LOHA", "r": 2, "alpha": 6, "alpha_pattern": {)";
  EXPECT_EQ(read(write_peft(tensors, config + "}}")).modules.at(0).scale, 3.0);
  EXPECT_EQ(read(write_peft(tensors, config + R"("q_proj": 1}})")).modules.at(0).scale, 0.5);
}

TEST("adapter kinds: LoHa with Tucker cores includes the cores in its products") {
  const at::Tensor core1 = exact_values({2, 2}, 5), core2 = exact_values({2, 2}, 6);
  const Tensors tucker = {{"hada_t1", core1},
                          {"hada_t2", core2.view({2, 2, 1, 1})},
                          {"hada_w1_a", exact_values({2, 32}, 1)},
                          {"hada_w1_b", exact_values({2, 32}, 2)},
                          {"hada_w2_a", exact_values({2, 32}, 3)},
                          {"hada_w2_b", exact_values({2, 32}, 4)}};
  const auto rebuilt = [&](const std::string& n, const at::Tensor& core) {
    const at::Tensor left = plain_product(tucker.at("hada_w" + n + "_a").t(), core);
    return plain_product(left, tucker.at("hada_w" + n + "_b"));
  };
  EXPECT(largest_difference(adapted(write_parts(tucker)), kWeight + rebuilt("1", core1) * rebuilt("2", core2)) < 1e-6);
  const std::string convolution = write_parts(with(tucker, {{"hada_t1", at::ones({2, 2, 3, 3})}}));
  EXPECT_THROWS(read(convolution),
                "hada_t1' has shape [2, 2, 3, 3], expected [2, 2]: the adapter changes a convolution");
}

TEST("adapter kinds: applies DoRA to a LoHa with magnitudes") {
  const at::Tensor norms = at::arange(1, 33, at::kFloat).view({32, 1});
  const at::Tensor weight = adapted(write_parts(with(kLoha, {{"dora_scale", norms}})));
  EXPECT(largest_difference(row_norms(weight), norms) < 1e-4);
}

TEST("adapter kinds: IA3 of PEFT multiplies outputs, or inputs of feed-forward modules") {
  const auto folder = [](const std::string& module, const at::Tensor& factors) {
    return write_peft({{"base_model.model." + module + ".ia3_l", factors}},
                      R"({"peft_type": "IA3", "feedforward_modules": ["gate_proj"], "target_modules": ["q_proj"]})");
  };
  const at::Tensor factors = exact_values({32}, 7, 1.0) + 1;
  at::Tensor rows = kWeight.clone(), columns = kWeight.clone();
  for (int64_t i = 0; i < 32; ++i) {
    for (int64_t j = 0; j < 32; ++j) {
      rows[i][j] = kWeight[i][j].item<double>() * factors[i].item<double>();
      columns[i][j] = kWeight[i][j].item<double>() * factors[j].item<double>();
    }
  }
  EXPECT(read(folder(kQ, factors.view({32, 1}))).kind == AdapterKind::kIa3);
  EXPECT(largest_difference(adapted(folder(kQ, factors.view({32, 1}))), rows) < 1e-6);
  EXPECT(largest_difference(adapted(folder(kQ, factors.view({1, 32}))), columns) < 1e-6);
  EXPECT(largest_difference(adapted(folder(kQ, factors.view({32, 1})), 0.5), (kWeight + rows) / 2) < 1e-6);
  const Adapter gate = read(folder(kGate, at::ones({1, 32})));
  EXPECT(gate.modules.at(0).adapt(at::ones({48, 32}), 1).equal(at::ones({48, 32})));
  EXPECT_THROWS(read(folder(kGate, at::ones({32, 1}))), "expected 48 numbers for the outputs of " + kGate);
}

TEST("adapter kinds: IA3 of LyCORIS adds its factors to 1, along inputs if on_input is set") {
  const at::Tensor factors = exact_values({1, 32}, 7);
  const auto path = [&](const at::Tensor& on_input) {
    return write_parts({{"weight", factors}, {"on_input", on_input}});
  };
  const at::Tensor rows = kWeight + kWeight * factors.view({32, 1}), columns = kWeight + kWeight * factors;
  EXPECT(largest_difference(adapted(path(at::scalar_tensor(0, at::kLong))), rows) < 1e-6);
  EXPECT(largest_difference(adapted(path(at::tensor({1}, at::kInt))), columns) < 1e-6);
  EXPECT_THROWS(read(write_parts({{"on_input", at::scalar_tensor(1, at::kLong)}})), ".ia3_weight' is missing");
}

TEST("adapter kinds: accepts several kinds in a file, but only one per module") {
  Tensors tensors;
  for (const auto& [part, tensor] : kLoha) tensors[lycoris_name(kQ) + "." + part] = tensor;
  tensors[lycoris_name(kGate) + ".lora_down.weight"] = exact_values({2, 32}, 1);
  tensors[lycoris_name(kGate) + ".lora_up.weight"] = exact_values({48, 2}, 2);
  const Adapter adapter = read(write_single(tensors));
  EXPECT(adapter.modules.at(0).kind() == AdapterKind::kLoha && adapter.modules.at(1).kind() == AdapterKind::kLora);
  tensors[lycoris_name(kGate) + ".lokr_w1"] = exact_values({2, 2}, 1);
  EXPECT_THROWS(read(write_single(tensors)), "belong to different kinds of adapter");
}

TEST("adapter kinds: names the damaged tensor of a LoHa") {
  const std::pair<Tensors, std::string> damages[] = {
      {{{"hada_w1_a", at::zeros({32, 3})}}, "the ranks differ"},
      {{{"hada_w2_a", at::zeros({31, 2})}}, "change a weight of shape [31, 32]"},
      {{{"hada_w1_b", at::full({2, 32}, NAN)}}, "contains NaN or infinity"},
      {{{"hada_w2_b", at::zeros({2, 32}, at::kLong)}}, "is not floating-point"}};
  for (const auto& [change, message] : damages) EXPECT_THROWS(read(write_parts(with(kLoha, change))), message);
  Tensors half = kLoha;
  half.erase("hada_w2_b");
  EXPECT_THROWS(read(write_parts(half)), ".hada_w2_b' is missing");
}

TEST("adapter kinds: accepts a rank larger than the weight") {
  const at::Tensor a = exact_values({4096, 32}, 1, 1.0 / 64), b = exact_values({32, 4096}, 2, 1.0 / 64);
  const std::string path = write_single({{kQ + ".lora_A.weight", a}, {kQ + ".lora_B.weight", b}});
  EXPECT(largest_difference(adapted(path), kWeight + at::matmul(b.to(at::kDouble), a.to(at::kDouble))) < 1e-4);
}

TEST("adapter kinds: reads a PEFT folder with a pickle written by Python") {
  const std::string folder = fixture_directory();
  write_file(folder + "/adapter_config.json", peft_config());
  std::filesystem::copy_file("native/test/fixtures/python_adapter.bin", folder + "/adapter_model.bin");
  const auto values = [](int64_t rows, int64_t columns, const std::function<double(int64_t, int64_t)>& value) {
    at::Tensor result = at::zeros({rows, columns});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) result[i][j] = value(i, j);
    }
    return result;
  };
  const Adapter adapter = read(folder);
  EXPECT_EQ(adapter.modules.size(), size_t{2});
  EXPECT_EQ(adapter.unmatched_tensors.size(), size_t{0});
  for (int64_t n = 0; n < 2; ++n) {
    const at::Tensor a = values(3, 32, [&](int64_t i, int64_t j) { return ((i * 7 + j * 3 + n) % 11 - 5) / 8.0; });
    const at::Tensor b = values(32, 3, [&](int64_t i, int64_t j) { return ((i * 5 + j * 2 + n) % 13 - 6) / 16.0; });
    EXPECT(adapter.modules[static_cast<size_t>(n)].delta(kWeight).equal(at::matmul(b, a) * 2));
  }
  EXPECT_EQ(read(folder + "/adapter_model.bin").modules.size(), size_t{2});
}

TEST("adapter kinds: rejects a pickle that would run code, and a .bin that is not an archive, naming the file") {
  const std::string path = fixture_directory() + "/adapter_model.bin";
  const auto refusal = [&](const std::string& bytes) {
    write_file(path, bytes);
    try {
      read(path);
    } catch (const Error& error) {
      EXPECT(error.code() == ErrorCode::kBadCheckpoint);
      return std::string(error.what());
    }
    return "nothing was refused"s;
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string code = "\x80\x02" "cos\nsystem\nX\4\0\0\0true\x85R."s;
  const std::string ran = refusal(zip_bytes({{"a/data.pkl", code}}));
  EXPECT(contains(ran, path) && contains(ran, "it calls 'os system'"));
  const std::string object = "\x80\x02" "c__main__\nModel\n)\x81."s;
  EXPECT(contains(refusal(zip_bytes({{"a/data.pkl", object}})), "opcode 129"));
  EXPECT(contains(refusal(code), "a bare pickle, as torch before 1.6 wrote it"));
  EXPECT(contains(refusal("GGUF"), "not a readable zip archive"));
  EXPECT(contains(refusal(zip_bytes({{"a/data.pkl", "\x80\x02}."}})), "holds no adapter"));
}

TEST("adapter kinds: identifies adapters of other models and files that are not adapters") {
  const auto refusal = [](const std::vector<std::string>& names) {
    Tensors tensors;
    for (const auto& name : names) tensors[name] = at::ones({4, 4});
    try {
      read(write_single(tensors));
    } catch (const Error& error) {
      EXPECT(error.code() == ErrorCode::kBadCheckpoint);
      return std::string(error.what());
    }
    return "nothing was refused"s;
  };
  const auto lora = [](const std::string& module) {
    return std::vector<std::string>{module + ".lora_down.weight", module + ".lora_up.weight"};
  };
  const std::pair<std::vector<std::string>, std::string> files[] = {
      {lora("lora_unet_input_blocks_4_1_transformer_blocks_9_attn1_to_k"), "an adapter of Stable Diffusion XL"},
      {lora("lora_unet_down_blocks_0_attentions_0_proj_in"), "an adapter of Stable Diffusion:"},
      {lora("lora_unet_double_blocks_0_img_attn_qkv"), "an adapter of FLUX"},
      {lora("transformer.single_transformer_blocks.0.attn.to_q"), "an adapter of FLUX"},
      {lora("transformer_blocks.0.speaker_embedder"), "an adapter of ACE-Step 1 (3.5B)"},
      {lora("diffusion_model.blocks.0.self_attn.q"), "an adapter of Wan"},
      {lora("lora_te_layers_0_self_attn_q_proj"), "an adapter of a text encoder"},
      {lora("somewhere.else"), "the adapter was made for another model"},
      {{"lora_unet_x.oft_blocks", "lora_unet_x.alpha"}, "holds an OFT adapter, which cannot be used"},
      {{"diffusion_model." + kQ + ".diff"}, "holds differences of whole weights"},
      {{kQ + ".oft_blocks"}, "holds an OFT adapter, which cannot be used as an adapter; LoRA, LoKr, LoHa and IA3 can"},
      {{"model.diffusion_model.decoder.layers.0.mlp.up_proj.weight"}, "holds a whole model"},
      {{"emb_params"}, "holds a textual inversion"}};
  for (const auto& [names, message] : files) {
    const std::string found = refusal(names);
    if (found.find(message) == std::string::npos) EXPECT_EQ(found, message);
    EXPECT(found.find("style.safetensors: ") != std::string::npos);
  }
  const std::string gguf = fixture_directory() + "/style.gguf";
  write_file(gguf, "GGUF");
  EXPECT_THROWS(read(gguf), "a GGUF file; adapters are read from .safetensors and .bin files");
}
