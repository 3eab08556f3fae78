// Tests where the settings of an adapter come from, and which of them are rejected or reported.
#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include "core/adapters/adapter.h"
#include "core/adapters/module_pattern.h"
#include "core/checkpoint/json.h"
#include "core/runtime/error.h"
#include "test/tiny_adapter.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const std::vector<AdapterTarget> kQOnly = {{kQ, 32, 32}};

/// Scale of the only module of an adapter.
double scale(const std::string& path) {
  const Adapter adapter = read(path);
  EXPECT_EQ(adapter.modules.size(), size_t{1});
  return adapter.modules[0].scale;
}

/// A LoRA of kQ without alpha tensors, of rank 3.
Tensors lora() { return lora_tensors(kQOnly, peft_key); }

/// Scale of that LoRA with this adapter_config.json.
double scale_with(const std::string& config) { return scale(write_peft(lora(), config)); }

std::vector<std::string> warnings_with(const std::string& config) { return read(write_peft(lora(), config)).warnings; }

/// Metadata of a safetensors file with one key.
std::string metadata(const std::string& key, const std::string& value) {
  return json_object({{key, json_string(value)}});
}

/// Scale of the LoRA in a single file with this metadata.
double scale_under(const std::string& key, const std::string& value) {
  return scale(write_single(lora(), metadata(key, value)));
}

/// Text of "a" and "b" without a period.
std::string random_letters(size_t length) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < length) {
    state = state * 1664525 + 1013904223;
    text += state >> 31 ? 'a' : 'b';
  }
  return text;
}

Tensors lycoris(const Tensors& parts) {
  Tensors tensors;
  for (const auto& [part, tensor] : parts) tensors[lycoris_name(kQ) + "." + part] = tensor;
  return tensors;
}

const Tensors kWholeLokr = {{"lokr_w1", exact_values({4, 4}, 1)}, {"lokr_w2", exact_values({8, 8}, 2)}};
const Tensors kLowRankLokr = {{"lokr_w1", exact_values({4, 4}, 1)},
                              {"lokr_w2_a", exact_values({8, 2}, 2)},
                              {"lokr_w2_b", exact_values({2, 8}, 3)}};

}  // namespace

TEST("adapter config: takes alpha from the metadata of diffusers, with and without the name of a model") {
  EXPECT_EQ(scale_under("lora_adapter_metadata", R"({"transformer.r": 3, "transformer.lora_alpha": 6})"), 2.0);
  EXPECT_EQ(scale_under("lora_adapter_metadata", R"({"r": 3, "lora_alpha": 6, "peft_type": "LORA"})"), 2.0);
  EXPECT_EQ(scale_under("lora_adapter_metadata", R"({"text_encoder.lora_alpha": 9, "transformer.lora_alpha": 6})"),
            2.0);
  EXPECT_EQ(scale_under("lora_adapter_metadata", R"({"decoder.lora_alpha": 6})"), 2.0);
  EXPECT_EQ(scale_under("lora_adapter_metadata",
                        R"({"transformer.lora_alpha": 6, "transformer.alpha_pattern": {"self_attn\\.q_proj": 12}})"),
            4.0);
  EXPECT_NEAR(scale_under("lora_adapter_metadata", R"({"transformer.lora_alpha": 6, "transformer.use_rslora": true})"),
              6 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(scale_under("lora_adapter_metadata", "{}"), 1.0);
  for (const char* empty : {"{}", "null"}) {
    const std::string both = R"({"lora_adapter_metadata": ")" + std::string(empty) + R"(", "ss_network_alpha": "6"})";
    EXPECT_EQ(scale(write_single(lora(), both)), 2.0);
  }
  EXPECT_THROWS(scale_under("lora_adapter_metadata", "6"), "(lora_adapter_metadata)");
  EXPECT_THROWS(scale_under("lora_adapter_metadata", R"({"unet.lora_alpha": 6, "vae.lora_alpha": 6})"),
                "has settings of several models, and none is called transformer");
  EXPECT_THROWS(scale_under("lora_adapter_metadata", R"({"transformer.init_lora_weights": "pissa"})"),
                "init_lora_weights is pissa");
}

TEST("adapter config: takes alpha from the metadata of kohya's programs, unless it is None") {
  EXPECT_EQ(scale_under("ss_network_alpha", "6"), 2.0);
  EXPECT_EQ(scale_under("ss_network_alpha", "6.0"), 2.0);
  EXPECT_EQ(scale_under("lora_alpha", "6"), 2.0);
  EXPECT_EQ(scale_under("ss_network_alpha", "None"), 1.0);
  EXPECT_EQ(scale_under("ss_network_alpha", ""), 1.0);
  EXPECT_THROWS(scale_under("ss_network_alpha", "high"), "(ss_network_alpha): 'high' is not a number");
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong}) {
    Tensors own = lora();
    own["base_model.model." + kQ + ".alpha"] = at::scalar_tensor(3, type);
    EXPECT_EQ(scale(write_single(own, metadata("ss_network_alpha", "6"))), 1.0);
  }
  EXPECT_EQ(scale(write_single(lycoris(kLowRankLokr), metadata("ss_network_alpha", "6"))), 3.0);
  EXPECT_EQ(scale(write_single(lycoris(kWholeLokr), metadata("ss_network_alpha", "6"))), 1.0);
}

TEST("adapter config: reads a diffusers folder with its metadata, also beside other files and in adapter/") {
  const std::string folder = fixture_directory(), inner = fixture_directory();
  const std::string settings = metadata("lora_adapter_metadata", R"({"transformer.lora_alpha": 6})");
  write_safetensors(folder + "/pytorch_lora_weights.safetensors", lora(), settings);
  write_safetensors(folder + "/optimizer.safetensors", {{"exp_avg", at::ones({2})}});
  EXPECT_EQ(scale(folder), 2.0);
  std::filesystem::create_directory(inner + "/adapter");
  write_safetensors(inner + "/adapter/pytorch_lora_weights.safetensors", lora(), settings);
  EXPECT_EQ(scale(inner), 2.0);
}

TEST("adapter config: finds LoKr and LoHa files in a folder and in adapter/") {
  for (const char* name : {"lokr_weights.safetensors", "loha_weights.safetensors", "style.safetensors"}) {
    for (const char* inner : {"/", "/adapter/"}) {
      const std::string folder = fixture_directory();
      std::filesystem::create_directories(folder + inner);
      write_safetensors(folder + inner + name, lycoris(kWholeLokr));
      write_file(folder + inner + "._" + name, "a file of macOS");
      EXPECT_EQ(scale(folder), 1.0);
    }
  }
}

TEST("adapter config: uses the config for adapter_model files, and for others only without metadata") {
  const std::string folder = write_peft(lora(), peft_config());
  const std::string own = metadata("lora_adapter_metadata", R"({"transformer.lora_alpha": 12})");
  write_safetensors(folder + "/adapter_model.safetensors", lora(), own);
  write_safetensors(folder + "/other.safetensors", lora(), own);
  write_safetensors(folder + "/plain.safetensors", lora());
  EXPECT_EQ(scale(folder), 2.0);
  EXPECT_EQ(scale(folder + "/other.safetensors"), 4.0);
  EXPECT_EQ(scale(folder + "/plain.safetensors"), 2.0);
  std::filesystem::remove(folder + "/adapter_model.safetensors");
  std::filesystem::remove(folder + "/other.safetensors");
  EXPECT_EQ(scale(folder), 2.0);
}

TEST("adapter config: does not apply PEFT's config to a LoKr or LoRA of other programs beside it") {
  const std::string config = R"({"peft_type": "LOKR", "r": 16, "alpha": 8, "use_rslora": true})";
  const std::string folder = write_peft({}, config), path = folder + "/style.safetensors";
  std::filesystem::remove(folder + "/adapter_model.safetensors");
  Tensors low = lycoris(kLowRankLokr);
  low[lycoris_name(kQ) + ".alpha"] = at::scalar_tensor(6.0);
  const Tensors kohya = {{"lora_unet_" + lycoris_name(kQ).substr(8) + ".alpha", at::scalar_tensor(6.0)},
                         {"lora_unet_" + lycoris_name(kQ).substr(8) + ".lora_down.weight", exact_values({3, 32}, 1)},
                         {"lora_unet_" + lycoris_name(kQ).substr(8) + ".lora_up.weight", exact_values({32, 3}, 2)}};
  const std::pair<Tensors, double> files[] = {{lycoris(kWholeLokr), 1.0}, {low, 3.0}, {kohya, 2.0}};
  for (const auto& [tensors, expected] : files) {
    write_safetensors(path, tensors);
    EXPECT_EQ(scale(path), expected);
    EXPECT_EQ(scale(folder), expected);
  }
}

TEST("adapter config: reads alpha as a number or its text, and assumes PEFT's default with a warning") {
  const auto with = [](const std::string& alpha) {
    return scale_with(R"({"peft_type": "LORA", "r": 3, "lora_alpha": )" + alpha + "}");
  };
  EXPECT_EQ(with("6"), 2.0);
  EXPECT_EQ(with("6.0"), 2.0);
  EXPECT_EQ(with(R"("6")"), 2.0);
  EXPECT_EQ(with(R"("6.0")"), 2.0);
  EXPECT_EQ(with("0"), 0.0);
  EXPECT_THROWS(with(R"("six")"), "lora_alpha is a string, expected a number");
  EXPECT_THROWS(with("null"), "lora_alpha is null, expected a number");
  EXPECT_THROWS(with("true"), "lora_alpha is a boolean, expected a number");
  EXPECT_EQ(scale_with(R"({"peft_type": "LORA", "r": 3})"), 8.0 / 3);
  EXPECT((warnings_with(R"({"peft_type": "LORA", "r": 3})") ==
          std::vector<std::string>{"adapter_config.json has no lora_alpha: PEFT's default of 8 was used"}));
  EXPECT(warnings_with(peft_config()).empty());
}

TEST("adapter config: reads a peft_type in lower case, or none") {
  EXPECT_EQ(scale_with(R"({"peft_type": "lora", "lora_alpha": 6})"), 2.0);
  EXPECT_EQ(scale_with(R"({"peft_type": "PeftType.LORA", "lora_alpha": 6})"), 2.0);
  EXPECT_EQ(scale_with(R"({"peft_type": null, "lora_alpha": 6})"), 2.0);
  EXPECT_EQ(scale_with(R"({"lora_alpha": 6, "r": 3})"), 2.0);
  EXPECT_THROWS(scale_with(R"({"peft_type": "AdaLoRA"})"), "peft_type is AdaLoRA; supported are LORA, LOHA, LOKR");
  EXPECT_THROWS(scale_with("{}"), "peft_type is missing");
}

TEST("adapter config: reads switches as a boolean or its text") {
  for (const char* on : {"true", "\"true\"", "\"True\""}) {
    EXPECT_NEAR(scale_with(peft_config(std::string(R"(, "use_rslora": )") + on)), 6 / std::sqrt(3.0), 1e-12);
  }
  EXPECT_EQ(scale_with(peft_config(R"(, "use_rslora": "False", "use_dora": "false", "lora_bias": "False")")), 2.0);
  EXPECT_THROWS(scale_with(peft_config(R"(, "use_rslora": "maybe")")), "use_rslora is a string, expected a boolean");
}

TEST("adapter config: reports an alpha of 0, and an alpha in metadata that no known program writes") {
  EXPECT((warnings_with(R"({"peft_type": "LORA", "r": 3, "lora_alpha": 0})") ==
          std::vector<std::string>{"the adapter changes nothing: its alpha is 0"}));
  for (const char* value : {R"({"lora_alpha": 6})", R"({"peft": {"alpha": 6}})"}) {
    EXPECT((read(write_single(lora(), metadata("network_config", value))).warnings ==
            std::vector<std::string>{"the alpha in the metadata network_config was not read: used scale 1"}));
  }
  EXPECT_EQ(read(write_single(lora(), metadata("networkAlpha", "6"))).warnings.size(), 1u);
}

TEST("adapter config: matches alpha_pattern as PEFT does, first match first") {
  const auto with = [](const std::string& patterns) {
    return scale_with(peft_config(R"(, "alpha_pattern": {)" + patterns + "}"));
  };
  EXPECT_EQ(with(R"("q_pro.*": 12)"), 4.0);
  EXPECT_EQ(with(R"(".*self_attn\\.[qk]_proj": 12)"), 4.0);
  EXPECT_EQ(with(R"("layers\\.\\d+\\.(?:self|cross)_attn\\.q_proj$": "12")"), 4.0);
  EXPECT_EQ(with(R"("^layers\\.0\\..*": 12)"), 4.0);
  EXPECT_EQ(with(R"("^self_attn\\.q_proj": 12)"), 2.0);
  EXPECT_EQ(with(R"("proj": 12, "elf_attn.q_proj": 12, "q_proj.": 12, "k_proj|v_proj": 12)"), 2.0);
  EXPECT_EQ(with(R"("q_proj|k_proj": 12)"), 4.0);
  EXPECT_EQ(with(R"("q_proj": 12, "layers.0.self_attn.q_proj": 3)"), 4.0);
  EXPECT_EQ(with(R"("layers.0.self_attn.q_proj": 3, "q_proj": 12)"), 1.0);
  EXPECT_THROWS(with(R"("(?i)Q_PROJ": 12)"), "alpha_pattern '(?i)Q_PROJ' is not supported");
  EXPECT_THROWS(with(R"("(q_proj": 12)"), "alpha_pattern '(q_proj' is not supported");
  EXPECT_EQ(with(R"("^layers\\.\\d+\\.(self|cross)_attn\\.q_proj$": 12)"), 4.0);
  EXPECT_EQ(with(R"("^a|q_proj": 12)"), 4.0);
  EXPECT_EQ(with(R"("^q_proj$|^layers.*[|]|a\\|b": 12)"), 2.0);
  EXPECT_EQ(with(R"("^q_proj$|^layers.*$": 12)"), 4.0);
  EXPECT_THROWS(with("\"(^a|q_proj)\": 12"), "'^' is supported only at the start");
  EXPECT_THROWS(with(R"("q_proj": "high")"), "alpha_pattern.q_proj is a string, expected a number");
}

TEST("adapter config: reports a PEFT file without alpha and without config") {
  const std::string warning = "no alpha in the file and no adapter_config.json beside it: used scale 1";
  EXPECT(read(write_single(lora())).warnings == std::vector{warning});
  EXPECT(read(write_single(lora(), metadata("ss_network_alpha", "6"))).warnings.empty());
}

TEST("adapter config: matches a hostile pattern in bounded time") {
  const auto matches = module_pattern("((a+)+)+b");
  EXPECT(!matches(std::string(2000, 'a')));
  EXPECT(matches(std::string(2000, 'a') + "b"));
  EXPECT_THROWS(module_pattern("(a|b)*a(a|b){30}")(random_letters(30'000)), "is not supported: pattern: too many states");
  std::string patterns;
  for (int i = 0; i < 101; ++i) patterns += (i > 0 ? ", \"x{" : "\"x{") + std::to_string(i) + "}\": 1";
  EXPECT_THROWS(scale_with(peft_config(", \"alpha_pattern\": {" + patterns + "}")), "more than 100 regular");
}

TEST("adapter config: scales LoKr of PEFT by alpha / r, and of LyCORIS by 1 if no factor has a rank") {
  Tensors tensors;
  for (const auto& [part, tensor] : kWholeLokr) tensors["base_model.model." + kQ + "." + part] = tensor;
  const std::string config = R"({"peft_type": "LOKR", "r": 16, "alpha": 8)";
  EXPECT_EQ(scale(write_peft(tensors, config + "}")), 0.5);
  EXPECT_EQ(scale(write_peft(tensors, config + R"(, "rank_pattern": {"q_.*": 4}})")), 2.0);
  EXPECT_THROWS(scale(write_peft(tensors, config + R"(, "rank_pattern": {"q_proj": 0}})")), "has no finite scale");
  EXPECT_EQ(scale(write_single(lycoris(kWholeLokr))), 1.0);
}

TEST("adapter config: scales rank-stabilized LyCORIS adapters by alpha / sqrt(rank), whatever alpha they store") {
  const std::string settings = R"({"linear_dim": 2, "linear_alpha": 6, "rs_lora": true})";
  Tensors low = lycoris(kLowRankLokr);
  for (const double stored : {6.0, 6.0 * 2 / std::sqrt(2.0)}) {
    low[lycoris_name(kQ) + ".alpha"] = at::scalar_tensor(stored);
    EXPECT_NEAR(scale(write_single(low, metadata("lokr_config", settings))), 6 / std::sqrt(2.0), 1e-12);
  }
  EXPECT_NEAR(scale(write_single(lycoris(kWholeLokr), metadata("lokr_config", settings))), std::sqrt(2.0), 1e-12);
  const Tensors loha = {{"hada_w1_a", exact_values({32, 2}, 1)},
                        {"hada_w1_b", exact_values({2, 32}, 2)},
                        {"hada_w2_a", exact_values({32, 2}, 3)},
                        {"hada_w2_b", exact_values({2, 32}, 4)}};
  EXPECT_EQ(scale(write_single(lycoris(loha), metadata("loha_config", R"({"linear_alpha": "6"})"))), 3.0);
}

TEST("adapter config: multiplies the scale by the scalar of LyCORIS") {
  Tensors parts = kLowRankLokr;
  parts["scalar"] = at::scalar_tensor(0.25);
  parts["alpha"] = at::scalar_tensor(8.0);
  EXPECT_EQ(scale(write_single(lycoris(parts))), 1.0);
  parts = kWholeLokr;
  parts["scalar"] = at::scalar_tensor(0.25);
  EXPECT_EQ(scale(write_single(lycoris(parts))), 0.25);
}

TEST("adapter config: rejects adapters that need another base model or another kind of change") {
  const std::pair<const char*, const char*> refusals[] = {
      {R"("init_lora_weights": "pissa")", "init_lora_weights is pissa: the adapter needs the base model"},
      {R"("init_lora_weights": "pissa_niter_16")", "init_lora_weights is pissa_niter_16"},
      {R"("init_lora_weights": "olora")", "init_lora_weights is olora"},
      {R"("init_lora_weights": "corda")", "init_lora_weights is corda"},
      {R"("init_lora_weights": "lora_ga")", "init_lora_weights is lora_ga"},
      {R"("init_lora_weights": "loftq")", "init_lora_weights is loftq"},
      {R"("layer_replication": [[0, 2], [1, 2]])", "layer_replication is set: it repeats layers"},
      {R"("kasa_config": {"beta": 1})", "kasa_config is set"},
      {R"("lora_bias": true)", "lora_bias is set: it adds biases"},
      {R"("use_qalora": true)", "use_qalora is set"},
      {R"("use_bdlora": {"nblocks": 2})", "use_bdlora is set"},
      {R"("arrow_config": {"top_k": 3})", "arrow_config is set"},
      {R"("alora_invocation_tokens": [1])", "alora_invocation_tokens is set"}};
  for (const auto& [setting, message] : refusals) {
    EXPECT_THROWS(scale_with(peft_config(std::string(", ") + setting)), message);
  }
}

TEST("adapter config: accepts settings without effect, and reports unknown ones that are set") {
  const std::string neutral =
      R"(, "init_lora_weights": "eva", "bias": "none", "layer_replication": null, "lora_bias": false, "kasa_config": {},
          "modules_to_save": null, "exclude_modules": ["k_proj"], "target_parameters": ["q_proj.weight"],
          "fan_in_fan_out": true, "megatron_config": {"a": 1}, "future_feature": null, "other_feature": false)";
  EXPECT_EQ(scale_with(peft_config(neutral)), 2.0);
  EXPECT(warnings_with(peft_config(neutral)).empty());
  EXPECT((warnings_with(peft_config(R"(, "future_feature": 0.5)")) ==
          std::vector<std::string>{"adapter_config.json: the unknown setting future_feature was ignored"}));
}

TEST("adapter config: names biases, whole weights and other tensors that cannot be applied") {
  const std::pair<std::string, std::string> tensors[] = {
      {"base_model.model.proj_out.base_layer.bias", "is a trained bias"},
      {"base_model.model.proj_out.weight", "is a whole weight (modules_to_save)"},
      {"base_model.model." + kQ + ".lora_B.bias", "is a bias of the LoRA (lora_bias)"},
      {"base_model.model." + kQ + ".diff_b", "is a trained bias"},
      {"base_model.model.norm.diff", "is the change of a whole weight"},
      {"base_model.model." + kQ + ".lora_E", "is a tensor of AdaLoRA"}};
  for (const auto& [name, message] : tensors) {
    Tensors with = lora();
    with[name] = at::ones({4});
    EXPECT_THROWS(read(write_peft(with)), "tensor '" + name + "' " + message + ", which cannot be applied");
  }
}

TEST("adapter config: reads the tensor names of older programs") {
  const Tensors reference = lora();
  const std::pair<const char*, const char*> spellings[] = {
      {".lora.down.weight", ".lora.up.weight"}, {".lora_linear_layer.down.weight", ".lora_linear_layer.up.weight"}};
  for (const char* prefix : {"transformer.", "base_model.model._orig_mod.", "module."}) {
    for (const auto& [down, up] : spellings) {
      const Tensors tensors = {{prefix + kQ + down, reference.at(peft_key(kQ, "lora_A"))},
                               {prefix + kQ + up, reference.at(peft_key(kQ, "lora_B"))}};
      EXPECT_EQ(scale(write_single(tensors, metadata("ss_network_alpha", "6"))), 2.0);
    }
  }
}
