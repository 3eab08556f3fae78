#include "core/checkpoint/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/json.h"
#include "core/runtime/error.h"

namespace carillon {

namespace fs = std::filesystem;

namespace {

/// Content of a config.json. Error messages name the path of the file.
struct ConfigFile {
  std::string path;
  Json json;

  explicit ConfigFile(const ModelSource& source)
      : path(source.is_file() ? source.path + " (config)" : (fs::path(source.path) / "config.json").string()),
        json(source.is_file() ? Json::parse(source.config, path) : Json::read_file(path)) {
    require(json.is_object(), "expected an object");
  }

  void require(bool condition, const std::string& what) const {
    if (!condition) fail(ErrorCode::kBadCheckpoint, path + ": " + what);
  }
  int64_t positive(const std::string& key, std::optional<int64_t> fallback = std::nullopt) const {
    const int64_t value = fallback ? json.get_int(key, *fallback) : json.get_int(key);
    require(value > 0, key + " is " + std::to_string(value) + ", expected a positive number");
    return value;
  }
  void require_heads(int64_t heads, int64_t kv_heads, int64_t head_dim) const {
    require(heads % kv_heads == 0, "num_attention_heads is not a multiple of num_key_value_heads");
    require(head_dim % 2 == 0, "head_dim is odd; rotary positions need an even one");
  }
  void require_model_type(const std::string& expected) const {
    const std::string type = json.get_string("model_type", expected);
    require(type == expected, "model_type is '" + type + "', expected '" + expected + "'");
  }
};

/// Reads rope_theta, which newer files nest in rope_parameters or rope_scaling. Rejects scaled rotary positions (yarn,
/// linear, ...), because unscaled ones would sound wrong.
double read_rope_theta(const ConfigFile& file) {
  constexpr double kDefault = 1e6;
  std::optional<double> theta;
  if (file.json.has("rope_theta")) theta = file.json.get_double("rope_theta");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!file.json.has(key)) continue;
    const Json& nested = file.json.at(key);
    const std::string type = nested.get_string("rope_type", nested.get_string("type", "default"));
    file.require(type == "default",
                 std::string(key) + " asks for '" + type + "' rotary positions, which are not supported");
    if (!theta && nested.has("rope_theta")) theta = nested.get_double("rope_theta");
  }
  return theta.value_or(kDefault);
}

std::vector<bool> read_windowed_layers(const ConfigFile& file, int64_t num_layers) {
  std::vector<bool> slides;
  if (!file.json.has("layer_types")) {
    for (int64_t i = 0; i < num_layers; ++i) slides.push_back(i % 2 == 0);
    return slides;
  }
  for (const Json& type : file.json.at("layer_types").as_array()) {
    const std::string& name = type.as_string();
    file.require(name == "sliding_attention" || name == "full_attention", "unknown layer type '" + name + "'");
    slides.push_back(name == "sliding_attention");
  }
  file.require(static_cast<int64_t>(slides.size()) >= num_layers,
               "layer_types has fewer entries than num_hidden_layers");
  return slides;
}

/// Reads DitConfig::lyric_heads. If the config does not list them, a model with 24 layers and 16 heads gets the
/// reference's defaults.
std::vector<AttentionHead> read_lyric_heads(const ConfigFile& file, int64_t layers, int64_t heads) {
  constexpr const char* kKey = "lyric_alignment_layers_config";
  if (!file.json.has(kKey)) {
    if (layers != 24 || heads != 16) return {};
    return {{2, 6}, {3, 10}, {3, 11}, {4, 3}, {5, 8}, {5, 9}, {6, 8}};
  }
  std::vector<AttentionHead> found;
  for (const auto& [layer, of_layer] : file.json.at(kKey).as_object()) {
    for (const Json& head : of_layer.as_array()) {
      const int64_t index = std::strtoll(layer.c_str(), nullptr, 10), number = head.as_int();
      file.require(std::to_string(index) == layer && index >= 0 && index < layers && number >= 0 && number < heads,
                   std::string(kKey) + " names head " + std::to_string(number) + " of layer '" + layer +
                       "', which does not exist");
      found.push_back({index, number});
    }
  }
  std::ranges::stable_sort(found, {}, &AttentionHead::layer);
  return found;
}

/// Reads `music_lufs`. Published models lack it, and their training data are not published. The default is the level of
/// released music: most is between -20 and -8 LUFS, and streaming services play it at -14.
LoudnessRange read_music(const ConfigFile& file) {
  if (!file.json.has("music_lufs")) return {.low = -20.0, .high = -8.0};
  const std::vector<int64_t> range = file.json.get_ints("music_lufs");
  file.require(range.size() == 2 && range[0] < range[1] && range[1] <= 0, "music_lufs is not a range of levels");
  return {.low = static_cast<double>(range[0]), .high = static_cast<double>(range[1])};
}

/// @param head_dim default of head_dim, which is not hidden_size / heads; nullopt: the file must have it
void read_transformer(const ConfigFile& file, std::optional<int64_t> head_dim, TransformerConfig& out) {
  out.hidden_size = file.positive("hidden_size");
  out.intermediate_size = file.positive("intermediate_size");
  out.num_hidden_layers = file.positive("num_hidden_layers");
  out.num_attention_heads = file.positive("num_attention_heads");
  out.num_key_value_heads = file.positive("num_key_value_heads");
  out.head_dim = file.positive("head_dim", head_dim);
  file.require_heads(out.num_attention_heads, out.num_key_value_heads, out.head_dim);
  out.rms_norm_eps = file.json.get_double("rms_norm_eps", 1e-6);
  out.rope_theta = read_rope_theta(file);
  out.attention_bias = file.json.get_bool("attention_bias", false);
}

void read_dit(const ConfigFile& file, DitConfig& out) {
  const Json& json = file.json;
  read_transformer(file, std::nullopt, out);
  out.in_channels = json.get_int("in_channels");
  out.audio_acoustic_hidden_dim = file.positive("audio_acoustic_hidden_dim");
  file.require(out.in_channels == 3 * out.audio_acoustic_hidden_dim,
               "in_channels is not three times audio_acoustic_hidden_dim");
  out.patch_size = file.positive("patch_size", 2);
  out.is_turbo = json.get_bool("is_turbo", false);
  out.is_lego_sft = json.get_bool("is_lego_sft", false);
  out.music = read_music(file);
  out.timestep_mu = json.get_double("timestep_mu", -0.4);
  out.timestep_sigma = json.get_double("timestep_sigma", 1.0);
  out.sliding_window = json.get_bool("use_sliding_window", true) ? json.get_int("sliding_window", 128) : 0;
  file.require(out.sliding_window >= 0, "sliding_window is negative");
  out.layer_has_window = read_windowed_layers(file, out.num_hidden_layers);
  out.lyric_heads = read_lyric_heads(file, out.num_hidden_layers, out.num_attention_heads);
}

void read_fsq(const ConfigFile& file, DitConfig& out) {
  const Json& json = file.json;
  out.pool_window_size = file.positive("pool_window_size", 5);
  out.num_attention_pooler_hidden_layers = json.get_int("num_attention_pooler_hidden_layers", 2);
  out.fsq_dim = file.positive("fsq_dim", out.encoder_hidden_size);
  out.fsq_input_levels =
      json.has("fsq_input_levels") ? json.get_ints("fsq_input_levels") : std::vector<int64_t>{8, 8, 8, 5, 5, 5};
  file.require(!out.fsq_input_levels.empty(), "fsq_input_levels is empty");
  for (const int64_t level : out.fsq_input_levels) file.require(level > 1, "fsq_input_levels has a level below 2");
  file.require(json.get_int("fsq_input_num_quantizers", 1) == 1,
               "fsq_input_num_quantizers is not 1: residual quantizers are not supported");
}

/// Reads the sizes of the encoder from keys that begin with `prefix`. If `prefix` is not empty, each missing size
/// defaults to the corresponding size of the DiT.
void read_encoders(const ConfigFile& file, const std::string& prefix, DitConfig& out) {
  const auto size = [&](const char* key, int64_t of_dit) {
    return file.positive(prefix + key, prefix.empty() ? std::nullopt : std::optional(of_dit));
  };
  out.encoder_hidden_size = size("hidden_size", out.hidden_size);
  out.encoder_intermediate_size = size("intermediate_size", out.intermediate_size);
  out.encoder_num_attention_heads = size("num_attention_heads", out.num_attention_heads);
  out.encoder_num_key_value_heads = size("num_key_value_heads", out.num_key_value_heads);
  file.require_heads(out.encoder_num_attention_heads, out.encoder_num_key_value_heads, out.head_dim);
  out.text_hidden_dim = file.positive("text_hidden_dim", 1024);
  out.timbre_hidden_dim = file.positive("timbre_hidden_dim", out.audio_acoustic_hidden_dim);
  out.timbre_fix_frame = file.positive("timbre_fix_frame", 750);
  out.num_lyric_encoder_hidden_layers = file.json.get_int("num_lyric_encoder_hidden_layers", 8);
  out.num_timbre_encoder_hidden_layers = file.json.get_int("num_timbre_encoder_hidden_layers", 4);
}

DitConfig read_original(const ModelSource& source) {
  const ConfigFile file(source);
  file.require_model_type("acestep");
  DitConfig out;
  read_dit(file, out);
  out.timbre_prepends_special_token = file.json.has("encoder_hidden_size");
  read_encoders(file, "encoder_", out);
  read_fsq(file, out);
  return out;
}

DitConfig read_diffusers(const fs::path& root) {
  DitConfig out;
  read_dit(ConfigFile((root / "transformer").string()), out);
  read_encoders(ConfigFile((root / "condition_encoder").string()), "", out);
  // Only in the XL family do encoder and DiT differ in width. The presence of encoder_hidden_size does not identify
  // this family, because the diffusers converter always writes the key.
  out.timbre_prepends_special_token = out.encoder_hidden_size != out.hidden_size;
  read_fsq(ConfigFile((root / "audio_tokenizer").string()), out);
  return out;
}

}  // namespace

int64_t DitConfig::window_of_layer(int64_t index) const {
  const bool slides = index < static_cast<int64_t>(layer_has_window.size()) ? layer_has_window[index] : index % 2 == 0;
  return slides ? sliding_window : 0;
}

DitConfig DitConfig::read(const ModelSource& source) {
  const fs::path root(source.path);
  const bool is_diffusers = !source.is_file() && fs::is_directory(root / kDiffusersParts[0]);
  return is_diffusers ? read_diffusers(root) : read_original(source);
}

int64_t VaeConfig::samples_per_frame() const {
  int64_t samples = 1;
  for (const int64_t ratio : downsampling_ratios) samples *= ratio;
  return samples;
}

namespace {

VaeConfig::SpectralEncoder read_spectral_encoder(const ConfigFile& file, const VaeConfig& config) {
  const Json& own = file.json.at("spectral_encoder");
  const VaeConfig::SpectralEncoder out{own.get_int("clock_channels"), own.get_int("timbre_channels"),
                                       own.get_int("pitch_classes")};
  const auto lows = static_cast<int64_t>(config.oscillators.mean.size());
  file.require(lows > 0 && out.clock_channels >= 0 && out.timbre_channels >= 0 && out.pitch_classes >= 0 &&
                   out.pitch_classes <= 12 &&
                   lows + out.clock_channels + out.timbre_channels + out.pitch_classes == config.decoder_input_channels,
               "channels of spectral_encoder and oscillators do not add up to the latent channels");
  const int64_t samples = config.samples_per_frame();
  file.require(samples % 4 == 0 && samples <= 8192,
               "spectral_encoder needs a frame length of at most 8192 samples that is a multiple of 4");
  return out;
}

}  // namespace

VaeConfig VaeConfig::read(const ModelSource& source) {
  const ConfigFile file(source);
  VaeConfig out;
  out.sampling_rate = file.positive("sampling_rate");
  out.audio_channels = file.positive("audio_channels");
  out.encoder_hidden_size = file.json.has("spectral_encoder") ? 0 : file.positive("encoder_hidden_size");
  out.decoder_channels = file.positive("decoder_channels");
  out.decoder_input_channels = file.positive("decoder_input_channels");
  out.downsampling_ratios = file.json.get_ints("downsampling_ratios");
  out.channel_multiples = file.json.get_ints("channel_multiples");
  file.require(!out.downsampling_ratios.empty(), "downsampling_ratios is empty");
  file.require(out.downsampling_ratios.size() == out.channel_multiples.size(),
               "downsampling_ratios and channel_multiples differ in length");
  for (const int64_t ratio : out.downsampling_ratios) file.require(ratio > 0, "a downsampling ratio is not positive");
  for (const int64_t multiple : out.channel_multiples) file.require(multiple > 0, "a channel multiple is not positive");
  if (file.json.has("oscillators")) {
    const Json& oscillators = file.json.at("oscillators");
    for (const Json& value : oscillators.at("mean").as_array()) out.oscillators.mean.push_back(value.as_double());
    for (const Json& value : oscillators.at("deviation").as_array()) {
      out.oscillators.deviation.push_back(value.as_double());
    }
    out.oscillators.floor = oscillators.get_double("floor", 3e-4);
    out.oscillators.subtracted = oscillators.get_double("subtracted", 0);
    out.oscillators.loudest = oscillators.get_double("loudest", 2.3);
    file.require(out.oscillators.floor > 0, "oscillators.floor is not positive");
    file.require(out.oscillators.subtracted >= 0, "oscillators.subtracted is negative");
    const size_t count = out.oscillators.mean.size();
    file.require(count == out.oscillators.deviation.size() &&
                     count <= static_cast<size_t>(out.decoder_input_channels),
                 "oscillators needs one mean and one deviation for each of the first latent channels");
  }
  if (file.json.has("spectral_encoder")) out.spectral_encoder = read_spectral_encoder(file, out);
  return out;
}

Qwen3Config Qwen3Config::read(const ModelSource& source) {
  const ConfigFile file(source);
  file.require_model_type("qwen3");
  Qwen3Config out;
  out.vocab_size = file.positive("vocab_size");
  read_transformer(file, 128, out);
  out.max_position_embeddings = file.positive("max_position_embeddings", 40960);
  file.require(!file.json.get_bool("use_sliding_window", false),
               "use_sliding_window is true, which is not supported");
  return out;
}

}  // namespace carillon
