#include "core/checkpoint/config.h"

#include <filesystem>

#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;

namespace {

std::string directory_with(const std::string& config) {
  const std::string directory = test::fixture_directory();
  test::write_file(directory + "/config.json", config);
  return directory;
}

const std::string kDit =
    R"("hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "in_channels": 24, "audio_acoustic_hidden_dim": 8)";
const std::string kQwen3 = R"("vocab_size": 100, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
  "num_attention_heads": 4, "num_key_value_heads": 2)";
const std::string kVae =
    R"("sampling_rate": 48000, "audio_channels": 2, "encoder_hidden_size": 16, "decoder_channels": 8,
  "decoder_input_channels": 8, "downsampling_ratios": [2, 4, 10], "channel_multiples": [1, 2, 4])";

DitConfig dit(const std::string& more) { return DitConfig::read(directory_with("{" + kDit + more + "}")); }
Qwen3Config qwen3(const std::string& more) { return Qwen3Config::read(directory_with("{" + kQwen3 + more + "}")); }
VaeConfig vae(const std::string& text) { return VaeConfig::read(directory_with(text)); }

}  // namespace

TEST("config: derives missing values of a 2B config from the DiT sizes") {
  const auto config = dit("");
  EXPECT_EQ(config.encoder_hidden_size, 48);
  EXPECT_EQ(config.encoder_intermediate_size, 96);
  EXPECT_EQ(config.encoder_num_attention_heads, 4);
  EXPECT_EQ(config.encoder_num_key_value_heads, 2);
  EXPECT_EQ(config.fsq_dim, 48);
  EXPECT_EQ(config.timbre_hidden_dim, 8);
  EXPECT(!config.timbre_prepends_special_token && !config.is_turbo && !config.is_lego_sft);
  EXPECT_EQ(config.window_of_layer(0), 128);
  EXPECT_EQ(config.window_of_layer(1), 0);
  EXPECT_EQ(config.window_of_layer(10), 128);
}

TEST("config: an explicit encoder_hidden_size selects the XL family, even if equal to hidden_size") {
  const auto config = dit(R"(, "encoder_hidden_size": 48, "encoder_num_attention_heads": 2,
                              "is_turbo": true, "is_lego_sft": true)");
  EXPECT(config.timbre_prepends_special_token && config.is_turbo && config.is_lego_sft);
  EXPECT_EQ(config.encoder_num_attention_heads, 2);
}

TEST("config: layer_types and use_sliding_window determine the attention window of each layer") {
  const auto config =
      dit(R"(, "sliding_window": 4, "layer_types": ["full_attention", "sliding_attention", "full_attention"])");
  EXPECT_EQ(config.window_of_layer(0), 0);
  EXPECT_EQ(config.window_of_layer(1), 4);
  EXPECT_EQ(dit(R"(, "use_sliding_window": false)").window_of_layer(0), 0);
}

TEST("config: reads lyric alignment heads in layer order, else uses those of the published model of this size") {
  const auto sized = [](const std::string& layers_and_heads, const std::string& followers) {
    return DitConfig::read(
               directory_with(R"({"hidden_size": 48, "intermediate_size": 96, "head_dim": 16, "in_channels": 24,
      "audio_acoustic_hidden_dim": 8, "num_key_value_heads": 2, )" +
                              layers_and_heads +
                              (followers.empty() ? "" : R"(, "lyric_alignment_layers_config": )" + followers) + "}"))
        .lyric_heads;
  };
  const std::string small = R"("num_hidden_layers": 12, "num_attention_heads": 4)";
  EXPECT(sized(small, "").empty());
  EXPECT((sized(small, R"({"10": [1], "2": [3, 0]})") == std::vector<AttentionHead>{{2, 3}, {2, 0}, {10, 1}}));
  EXPECT_EQ(sized(R"("num_hidden_layers": 24, "num_attention_heads": 16)", "").size(), size_t{7});
  for (const char* followers :
       {R"({"2": [4]})", R"({"2": [-1]})", R"({"12": [0]})", R"({"-1": [0]})", R"({"two": [0]})"}) {
    EXPECT_THROWS(sized(small, followers), "which does not exist");
  }
}

TEST("config: rejects an invalid DiT config and names the key") {
  EXPECT_THROWS(dit(R"(, "layer_types": ["chunked_attention"])"), "unknown layer type 'chunked_attention'");
  EXPECT_THROWS(dit(R"(, "layer_types": ["full_attention"])"), "layer_types has fewer entries than num_hidden_layers");
  EXPECT_THROWS(dit(R"(, "encoder_num_key_value_heads": 3)"), "num_attention_heads is not a multiple");
  EXPECT_THROWS(dit(R"(, "patch_size": 0)"), "patch_size is 0, expected a positive number");
  EXPECT_THROWS(dit(R"(, "fsq_input_levels": [8, 1])"), "fsq_input_levels has a level below 2");
  EXPECT_THROWS(dit(R"(, "fsq_input_num_quantizers": 2)"), "fsq_input_num_quantizers is not 1");
  EXPECT_THROWS(dit(R"(, "rope_scaling": {"type": "yarn", "factor": 4})"), "asks for 'yarn' rotary positions");
  EXPECT_THROWS(dit(R"(, "model_type": "llama")"), "model_type is 'llama', expected 'acestep'");
  EXPECT_THROWS(dit(R"(, "pool_window_size": "five")"), "pool_window_size is a string, expected an integer");
  EXPECT_THROWS(DitConfig::read(directory_with(R"({"hidden_size": 48})")), "intermediate_size is missing");
  EXPECT_THROWS(DitConfig::read(directory_with("<html>")), "config.json: not JSON");
  EXPECT_THROWS(DitConfig::read(test::fixture_directory()), "config.json: No such file");
}

TEST("config: the diffusers layout assembles the same config from its parts") {
  const std::string directory = test::fixture_directory();
  const auto write = [&](const std::string& part, const std::string& config) {
    std::filesystem::create_directories(directory + "/" + part);
    test::write_file(directory + "/" + part + "/config.json", config);
  };
  write("transformer", "{" + kDit + R"(, "encoder_hidden_size": 48, "is_turbo": true, "sliding_window": 4})");
  write("condition_encoder",
        R"({"hidden_size": 48, "intermediate_size": 80, "num_attention_heads": 2, "num_key_value_heads": 1,
    "text_hidden_dim": 40, "timbre_hidden_dim": 8, "num_lyric_encoder_hidden_layers": 3,
    "num_timbre_encoder_hidden_layers": 2})");
  write("audio_tokenizer", R"({"fsq_dim": 48, "pool_window_size": 6, "num_attention_pooler_hidden_layers": 1})");
  const auto config = DitConfig::read(directory);
  EXPECT_EQ(config.encoder_intermediate_size, 80);
  EXPECT_EQ(config.encoder_num_attention_heads, 2);
  EXPECT_EQ(config.text_hidden_dim, 40);
  EXPECT_EQ(config.pool_window_size, 6);
  EXPECT_EQ(config.num_attention_pooler_hidden_layers, 1);
  EXPECT_EQ(config.window_of_layer(0), 4);
  EXPECT(config.is_turbo && !config.timbre_prepends_special_token);

  write("condition_encoder",
        R"({"hidden_size": 32, "intermediate_size": 80, "num_attention_heads": 2, "num_key_value_heads": 1})");
  EXPECT(DitConfig::read(directory).timbre_prepends_special_token);
}

TEST("config: Qwen3 reads rope_theta flat or nested and defaults head_dim to 128") {
  EXPECT_EQ(qwen3(R"(, "rope_theta": 5000)").rope_theta, 5000.0);
  EXPECT_EQ(qwen3(R"(, "rope_parameters": {"rope_theta": 6000, "rope_type": "default"})").rope_theta, 6000.0);
  EXPECT_EQ(qwen3(R"(, "rope_scaling": {"rope_theta": 7000})").rope_theta, 7000.0);
  EXPECT_EQ(qwen3(R"(, "rope_scaling": null)").rope_theta, 1e6);
  EXPECT_EQ(qwen3("").head_dim, 128);
}

TEST("config: rejects unsupported Qwen3 variants") {
  EXPECT_THROWS(qwen3(R"(, "use_sliding_window": true)"), "use_sliding_window is true");
  EXPECT_THROWS(qwen3(R"(, "head_dim": 15)"), "head_dim is odd");
  EXPECT_THROWS(qwen3(R"(, "model_type": "qwen3_moe")"), "expected 'qwen3'");
  EXPECT_THROWS(qwen3(R"(, "rope_scaling": {"rope_type": "linear"})"), "asks for 'linear' rotary positions");
}

TEST("config: samples per frame of the VAE are the product of its downsampling ratios") {
  EXPECT_EQ(vae("{" + kVae + "}").samples_per_frame(), 80);
  EXPECT_THROWS(vae("{}"), "sampling_rate is missing");
  EXPECT_THROWS(vae("[]"), "expected an object");
  std::string uneven = "{" + kVae + "}";
  uneven.replace(uneven.find("[1, 2, 4]"), 9, "[1, 2]");
  EXPECT_THROWS(vae(uneven), "differ in length");
  EXPECT(vae("{" + kVae + "}").oscillators.mean.empty());
  const VaeConfig playing = vae("{" + kVae + R"(, "oscillators": {"mean": [-2, -3.5], "deviation": [1, 2]}})");
  EXPECT((playing.oscillators.mean == std::vector<double>{-2, -3.5}));
  EXPECT_NEAR(playing.oscillators.floor, 3e-4, 1e-9);
  EXPECT_EQ(playing.oscillators.subtracted, 0);
  const std::string floored = R"(, "oscillators": {"mean": [-2], "deviation": [1], "loudest": 4, "floor": )";
  const VaeConfig quiet = vae("{" + kVae + floored + R"(0.002, "subtracted": 0.004}})");
  EXPECT_NEAR(quiet.oscillators.subtracted, 0.004, 1e-9);
  EXPECT_NEAR(quiet.oscillators.floor, 0.002, 1e-9);
  EXPECT_NEAR(quiet.oscillators.loudest, 4, 1e-9);
  EXPECT_THROWS(vae("{" + kVae + floored + "0}}"), "oscillators.floor is not positive");
  EXPECT_THROWS(vae("{" + kVae + floored + R"(0.002, "subtracted": -1}})"), "oscillators.subtracted is negative");
  EXPECT_THROWS(vae("{" + kVae + R"(, "oscillators": {"mean": [-2], "deviation": [1, 2]}})"),
                "oscillators needs one mean");
  const std::string two = R"(, "oscillators": {"mean": [-2, -3], "deviation": [1, 2]}, "spectral_encoder": )";
  const auto listening = [&](int timbre) {
    return vae("{" + kVae + two + R"({"clock_channels": 1, "timbre_channels": )" + std::to_string(timbre) +
               R"(, "pitch_classes": 3}})");
  };
  EXPECT_EQ(listening(2).spectral_encoder->timbre_channels, 2);
  EXPECT_THROWS(listening(3), "do not add up to the latent channels");
  std::string odd = "{" + kVae + two + R"({"clock_channels": 1, "timbre_channels": 2, "pitch_classes": 3}})";
  odd.replace(odd.find("[2, 4, 10]"), 10, "[1, 3, 15]");
  EXPECT_THROWS(vae(odd), "a multiple of 4");
  EXPECT(!playing.spectral_encoder);
}
