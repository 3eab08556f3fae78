#pragma once
// A data set of a few seconds and the configs of a model of a few thousand weights, written to a fresh directory.
#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "pretraining/options.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

namespace carillon::test {

constexpr int64_t kTinyVocabulary = 40, kTinyFirstCode = 20, kTinyCodes = 16;

/// Two seconds of a falling tone, 16 bits, stereo, 48 kHz.
inline std::string tiny_wav(double hertz, int64_t samples) {
  const at::Tensor time = at::arange(samples, at::kDouble) / 48000;
  const at::Tensor left = at::sin(time * (2 * M_PI * hertz)) * at::exp(-time) * 12000;
  const at::Tensor frames = at::stack({left, left * 0.5}, 1).to(at::kShort);
  const std::string data = bytes_of(frames);
  return "RIFF" + little_endian<uint32_t>(36 + data.size()) + "WAVEfmt " + little_endian<uint32_t>(16) +
         little_endian<uint16_t>(1) + little_endian<uint16_t>(2) + little_endian<uint32_t>(48000) +
         little_endian<uint32_t>(192000) + little_endian<uint16_t>(4) + little_endian<uint16_t>(16) + "data" +
         little_endian<uint32_t>(data.size()) + data;
}

inline std::string tiny_request(int piece) {
  const std::string own = std::to_string(piece);
  return R"("textTokenIds": [)" + own + R"(, 5, 6], "bareTextTokenIds": [5, )" + own + R"(], "lyricTokenIds": [)" + own +
         R"(, 7], "lmPromptTokenIds": [)" + own + R"(, 2, 3], "lmThinkTokenIds": [13, 14, )" + own + "]";
}

inline void write_tiny_data(const std::string& directory) {
  std::string lines;
  for (int piece = 0; piece < 4; ++piece) {
    const std::string id = "piece" + std::to_string(piece);
    std::filesystem::create_directories(directory + "/" + id);
    for (const auto& [track, hertz] : {std::pair{"mix", 220.0}, {"bass", 110.0}, {"drums", 330.0}}) {
      write_file(directory + "/" + id + "/" + track + ".wav", tiny_wav(hertz * (1 + piece), 96000 + 9600 * piece));
    }
    const std::string own = std::to_string(1 + piece);
    lines += R"({"id": ")" + id + R"(", "split": ")" + (piece < 2 ? "train" : "heldout") +
             R"(", "genre": "jazz", "bpm": 120, "keyScale": "A minor", "timeSignature": "4", "mix": ")" + id +
             R"(/mix.wav", "stems": {"bass": ")" + id + R"(/bass.wav", "drums": ")" + id + R"(/drums.wav"}, )" +
             tiny_request(1 + piece) + R"(, "variants": [{)" + tiny_request(1 + piece) + R"(}], "tasks": {"cover": [8, 5], )" +
             R"("repaint": [9, 5], "extract": {"bass": [10, 5]}, "lego": {"drums": [11, 5]}, )" +
             R"("complete": {"bass": [12, 5]}}})" + "\n";
  }
  write_file(directory + "/pieces.jsonl", lines);
  write_file(directory + "/words.jsonl", lines);
  write_file(directory + "/genres.json", R"(["folk", "jazz"])");
}

inline std::string tiny_qwen3(const std::string& architecture) {
  return R"({"model_type": "qwen3", "architectures": [")" + architecture + R"("], "vocab_size": )" +
         std::to_string(kTinyVocabulary) +
         R"(, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
             "num_key_value_heads": 1, "head_dim": 8, "rms_norm_eps": 1e-6, "max_position_embeddings": 512,
             "rope_theta": 10000})";
}

inline void write_tiny_model(const std::string& directory) {
  for (const char* part : {"/vae", "/text_encoder", "/lm"}) std::filesystem::create_directories(directory + part);
  write_file(directory + "/vae/config.json",
             R"({"sampling_rate": 48000, "audio_channels": 2, "encoder_hidden_size": 8, "decoder_channels": 4,
                 "decoder_input_channels": 4, "downsampling_ratios": [8, 4, 6, 10], "channel_multiples": [1, 2, 2, 2]})");
  write_file(directory + "/text_encoder/config.json", tiny_qwen3("Qwen3Model"));
  write_file(directory + "/lm/config.json", tiny_qwen3("Qwen3ForCausalLM"));
  write_file(directory + "/text_encoder/tokenizer.json", "{}");
  write_file(directory + "/lm/tokenizer.json",
             R"({"added_tokens": [{"id": 16, "content": "<|im_end|>"}, {"id": 20, "content": "<|audio_code_0|>"}]})");
  write_file(directory + "/config.json",
             R"({"model_type": "acestep", "is_turbo": true, "hidden_size": 16, "intermediate_size": 24,
                 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                 "in_channels": 12, "audio_acoustic_hidden_dim": 4, "patch_size": 2, "sliding_window": 8,
                 "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"],
                 "text_hidden_dim": 16, "timbre_hidden_dim": 4, "timbre_fix_frame": 20, "fsq_dim": 16,
                 "num_lyric_encoder_hidden_layers": 1, "num_timbre_encoder_hidden_layers": 1,
                 "num_attention_pooler_hidden_layers": 1, "pool_window_size": 5, "fsq_input_levels": [4, 4],
                 "fsq_input_num_quantizers": 1, "rope_theta": 10000})");
}

/// Options of a stage over a fresh copy of both.
inline pretraining::Options tiny_options() {
  pretraining::Options options;
  const std::string root = fixture_directory();
  options.data = root + "/data";
  options.model = root + "/model";
  options.work = root + "/work";
  std::filesystem::create_directories(options.work);
  options.device = "cpu";
  options.unconditional_prompt = {15, 13, 14};
  options.batch = 4;
  options.crop_seconds = 0.2;
  options.warmup_steps = 1;
  options.average_decay = 0;
  options.log_steps = 1;
  options.measure_steps = 0;
  write_tiny_data(options.data);
  write_tiny_model(options.model);
  return options;
}

}  // namespace carillon::test
