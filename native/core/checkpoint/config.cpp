#include "core/checkpoint/config.h"

#include <filesystem>

#include "core/checkpoint/json.h"
#include "core/checkpoint/names.h"
#include "core/runtime/error.h"

namespace carillon {

namespace fs = std::filesystem;

namespace {

Json read_config(const fs::path& directory) {
  const std::string path = (directory / "config.json").string();
  Json config = Json::read_file(path);
  if (!config.is_object()) fail(ErrorCode::kBadCheckpoint, path + ": expected an object");
  return config;
}

void require(bool condition, const std::string& directory, const std::string& what) {
  if (!condition) fail(ErrorCode::kBadCheckpoint, directory + ": config.json: " + what);
}

void require_positive(const std::string& directory, std::initializer_list<std::pair<const char*, int64_t>> values) {
  for (const auto& [name, value] : values) {
    require(value > 0, directory, std::string(name) + " is " + std::to_string(value) + ", expected a positive number");
  }
}

void require_heads(const std::string& directory, int64_t heads, int64_t kv_heads, int64_t head_dim) {
  require_positive(directory,
                   {{"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}, {"head_dim", head_dim}});
  require(heads % kv_heads == 0, directory, "num_attention_heads is not a multiple of num_key_value_heads");
  require(head_dim % 2 == 0, directory, "head_dim is odd, which rotary positions do not allow");
}

constexpr double kDefaultRopeTheta = 1e6;

/// Flat, or nested in rope_parameters or rope_scaling as newer files have it.
double read_rope_theta(const Json& config) {
  if (config.has("rope_theta")) return config.get_double("rope_theta");
  for (const char* nested : {"rope_parameters", "rope_scaling"}) {
    if (config.has(nested) && config.at(nested).has("rope_theta")) return config.at(nested).get_double("rope_theta");
  }
  return kDefaultRopeTheta;
}

/// Refuses scaled rotary positions (yarn, linear, ...): read as unscaled ones, the checkpoint would sound wrong.
void require_plain_rope(const Json& config, const std::string& directory) {
  for (const char* nested : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(nested)) continue;
    const std::string type = config.at(nested).get_string("rope_type", config.at(nested).get_string("type", "default"));
    require(type == "default", directory,
            std::string(nested) + " asks for '" + type + "' rotary positions, which are not supported");
  }
}

std::vector<bool> read_layer_slides(const Json& config, int64_t num_layers, const std::string& directory) {
  std::vector<bool> slides;
  if (!config.has("layer_types")) {
    for (int64_t i = 0; i < num_layers; ++i) slides.push_back(i % 2 == 0);
    return slides;
  }
  for (const Json& type : config.at("layer_types").as_array()) {
    const std::string& name = type.as_string();
    require(name == "sliding_attention" || name == "full_attention", directory, "unknown layer type '" + name + "'");
    slides.push_back(name == "sliding_attention");
  }
  require(static_cast<int64_t>(slides.size()) >= num_layers, directory,
          "layer_types has fewer entries than num_hidden_layers");
  return slides;
}

void read_dit(const Json& config, const std::string& directory, DitConfig& out) {
  out.hidden_size = config.get_int("hidden_size");
  out.intermediate_size = config.get_int("intermediate_size");
  out.num_hidden_layers = config.get_int("num_hidden_layers");
  out.num_attention_heads = config.get_int("num_attention_heads");
  out.num_key_value_heads = config.get_int("num_key_value_heads");
  out.head_dim = config.get_int("head_dim");
  out.in_channels = config.get_int("in_channels");
  out.audio_acoustic_hidden_dim = config.get_int("audio_acoustic_hidden_dim");
  out.patch_size = config.get_int("patch_size", 2);
  out.is_turbo = config.get_bool("is_turbo", false);
  out.is_lego_sft = config.get_bool("is_lego_sft", false);
  out.model_version = config.get_string("model_version", "");
  out.timestep_mu = config.get_double("timestep_mu", -0.4);
  out.timestep_sigma = config.get_double("timestep_sigma", 1.0);
  out.rms_norm_eps = config.get_double("rms_norm_eps", 1e-6);
  out.rope_theta = read_rope_theta(config);
  out.attention_bias = config.get_bool("attention_bias", false);
  out.sliding_window = config.get_bool("use_sliding_window", true) ? config.get_int("sliding_window", 128) : 0;
  out.layer_slides = read_layer_slides(config, out.num_hidden_layers, directory);
  require_plain_rope(config, directory);
}

void read_fsq(const Json& config, DitConfig& out) {
  out.pool_window_size = config.get_int("pool_window_size", 5);
  out.num_attention_pooler_hidden_layers = config.get_int("num_attention_pooler_hidden_layers", 2);
  out.fsq_dim = config.get_int("fsq_dim", out.encoder_hidden_size);
  out.fsq_input_levels =
      config.has("fsq_input_levels") ? config.get_ints("fsq_input_levels") : std::vector<int64_t>{8, 8, 8, 5, 5, 5};
  out.fsq_input_num_quantizers = config.get_int("fsq_input_num_quantizers", 1);
}

/// What both layouts name alike.
void read_encoders(const Json& config, DitConfig& out) {
  out.text_hidden_dim = config.get_int("text_hidden_dim", 1024);
  out.timbre_hidden_dim = config.get_int("timbre_hidden_dim", out.audio_acoustic_hidden_dim);
  out.timbre_fix_frame = config.get_int("timbre_fix_frame", 750);
  out.num_lyric_encoder_hidden_layers = config.get_int("num_lyric_encoder_hidden_layers", 8);
  out.num_timbre_encoder_hidden_layers = config.get_int("num_timbre_encoder_hidden_layers", 4);
}

DitConfig read_original(const std::string& directory) {
  const Json config = read_config(directory);
  const std::string type = config.get_string("model_type", "acestep");
  require(type == "acestep", directory, "model_type is '" + type + "', expected 'acestep'");
  DitConfig out;
  read_dit(config, directory, out);
  out.timbre_prepends_special_token = config.has("encoder_hidden_size");
  out.encoder_hidden_size = config.get_int("encoder_hidden_size", out.hidden_size);
  out.encoder_intermediate_size = config.get_int("encoder_intermediate_size", out.intermediate_size);
  out.encoder_num_attention_heads = config.get_int("encoder_num_attention_heads", out.num_attention_heads);
  out.encoder_num_key_value_heads = config.get_int("encoder_num_key_value_heads", out.num_key_value_heads);
  read_encoders(config, out);
  read_fsq(config, out);
  return out;
}

DitConfig read_diffusers(const std::string& directory) {
  const fs::path root(directory);
  DitConfig out;
  read_dit(read_config(root / "transformer"), (root / "transformer").string(), out);
  const Json encoder = read_config(root / "condition_encoder");
  out.encoder_hidden_size = encoder.get_int("hidden_size");
  out.encoder_intermediate_size = encoder.get_int("intermediate_size");
  out.encoder_num_attention_heads = encoder.get_int("num_attention_heads");
  out.encoder_num_key_value_heads = encoder.get_int("num_key_value_heads");
  // The converter always writes encoder_hidden_size, so its presence no longer tells the family: the widths do.
  out.timbre_prepends_special_token = out.encoder_hidden_size != out.hidden_size;
  read_encoders(encoder, out);
  read_fsq(read_config(root / "audio_tokenizer"), out);
  return out;
}

void check(const DitConfig& config, const std::string& directory) {
  require_positive(directory, {{"hidden_size", config.hidden_size},
                               {"intermediate_size", config.intermediate_size},
                               {"num_hidden_layers", config.num_hidden_layers},
                               {"audio_acoustic_hidden_dim", config.audio_acoustic_hidden_dim},
                               {"patch_size", config.patch_size},
                               {"encoder_hidden_size", config.encoder_hidden_size},
                               {"encoder_intermediate_size", config.encoder_intermediate_size},
                               {"text_hidden_dim", config.text_hidden_dim},
                               {"timbre_hidden_dim", config.timbre_hidden_dim},
                               {"timbre_fix_frame", config.timbre_fix_frame},
                               {"pool_window_size", config.pool_window_size},
                               {"fsq_dim", config.fsq_dim}});
  require_heads(directory, config.num_attention_heads, config.num_key_value_heads, config.head_dim);
  require_heads(directory, config.encoder_num_attention_heads, config.encoder_num_key_value_heads, config.head_dim);
  require(config.in_channels == 3 * config.audio_acoustic_hidden_dim, directory,
          "in_channels is not three times audio_acoustic_hidden_dim");
  require(config.sliding_window >= 0, directory, "sliding_window is negative");
  require(config.fsq_input_num_quantizers == 1, directory,
          "fsq_input_num_quantizers is not 1: residual quantizers are not supported");
  require(!config.fsq_input_levels.empty(), directory, "fsq_input_levels is empty");
  for (const int64_t level : config.fsq_input_levels)
    require(level > 1, directory, "fsq_input_levels has a level below 2");
}

}  // namespace

int64_t DitConfig::window_of_layer(int64_t index) const {
  const bool slides = index < static_cast<int64_t>(layer_slides.size()) ? layer_slides[index] : index % 2 == 0;
  return slides ? sliding_window : 0;
}

DitConfig DitConfig::read(const std::string& directory) {
  const bool diffusers = fs::is_directory(fs::path(directory) / kDiffusersParts[0]);
  const DitConfig config = diffusers ? read_diffusers(directory) : read_original(directory);
  check(config, directory);
  return config;
}

int64_t VaeConfig::samples_per_frame() const {
  int64_t samples = 1;
  for (const int64_t ratio : downsampling_ratios) samples *= ratio;
  return samples;
}

VaeConfig VaeConfig::read(const std::string& directory) {
  const Json config = read_config(directory);
  VaeConfig out;
  out.sampling_rate = config.get_int("sampling_rate");
  out.audio_channels = config.get_int("audio_channels");
  out.encoder_hidden_size = config.get_int("encoder_hidden_size");
  out.decoder_channels = config.get_int("decoder_channels");
  out.decoder_input_channels = config.get_int("decoder_input_channels");
  out.downsampling_ratios = config.get_ints("downsampling_ratios");
  out.channel_multiples = config.get_ints("channel_multiples");
  require_positive(directory, {{"sampling_rate", out.sampling_rate},
                               {"audio_channels", out.audio_channels},
                               {"encoder_hidden_size", out.encoder_hidden_size},
                               {"decoder_channels", out.decoder_channels},
                               {"decoder_input_channels", out.decoder_input_channels}});
  require(!out.downsampling_ratios.empty(), directory, "downsampling_ratios is empty");
  require(out.downsampling_ratios.size() == out.channel_multiples.size(), directory,
          "downsampling_ratios and channel_multiples differ in length");
  for (const int64_t ratio : out.downsampling_ratios)
    require(ratio > 0, directory, "a downsampling ratio is not positive");
  for (const int64_t multiple : out.channel_multiples)
    require(multiple > 0, directory, "a channel multiple is not positive");
  return out;
}

Qwen3Config Qwen3Config::read(const std::string& directory) {
  const Json config = read_config(directory);
  const std::string type = config.get_string("model_type", "qwen3");
  require(type == "qwen3", directory, "model_type is '" + type + "', expected 'qwen3'");
  Qwen3Config out;
  out.vocab_size = config.get_int("vocab_size");
  out.hidden_size = config.get_int("hidden_size");
  out.intermediate_size = config.get_int("intermediate_size");
  out.num_hidden_layers = config.get_int("num_hidden_layers");
  out.num_attention_heads = config.get_int("num_attention_heads");
  out.num_key_value_heads = config.get_int("num_key_value_heads");
  out.head_dim = config.get_int("head_dim", 128);
  out.rms_norm_eps = config.get_double("rms_norm_eps", 1e-6);
  out.rope_theta = read_rope_theta(config);
  out.attention_bias = config.get_bool("attention_bias", false);
  out.max_position_embeddings = config.get_int("max_position_embeddings", 40960);
  require_positive(directory, {{"vocab_size", out.vocab_size},
                               {"hidden_size", out.hidden_size},
                               {"intermediate_size", out.intermediate_size},
                               {"num_hidden_layers", out.num_hidden_layers},
                               {"max_position_embeddings", out.max_position_embeddings}});
  require_heads(directory, out.num_attention_heads, out.num_key_value_heads, out.head_dim);
  require_plain_rope(config, directory);
  require(!config.get_bool("use_sliding_window", false), directory,
          "use_sliding_window is true, which is not supported");
  return out;
}

}  // namespace carillon
