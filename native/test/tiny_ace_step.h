#pragma once
// Writes a DiT checkpoint with a few thousand random weights to a fresh directory, and denoises with it. The checkpoint
// may be of the 2B or the XL family.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>
#include <string>

#include "core/diffusion/denoise.h"
#include "core/dit/ace_step.h"
#include "test/checkpoint_files.h"
#include "test/differences.h"
#include "test/test.h"

namespace carillon::test {

struct TinySize {
  bool is_xl = false;  // condition encoder narrower than the DiT; timbre token
  bool is_turbo = false;
  int64_t hidden() const { return is_xl ? 40 : 32; }
  int64_t heads() const { return is_xl ? 8 : 4; }
};

constexpr int64_t kTinyEncoder = 32, kTinyLatent = 6, kTinyText = 24, kTinyHead = 8, kTinyKvHeads = 2, kTinyMlp = 48;
constexpr int64_t kTinyLayers = 2, kTinyWindow = 3, kTinySilence = 200, kTinyTimbreFrames = 10, kTinyFrequencies = 16;

inline at::Tensor random_tensor(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat) * scale;
}

/// Fills a checkpoint tensor by tensor.
class TinyWriter {
 public:
  explicit TinyWriter(const TinySize& size) : size_(size) {}

  Tensors write() {
    decoder();
    condition_encoder();
    tokenizer();
    return std::move(tensors_);
  }

 private:
  using Shape = std::vector<int64_t>;
  void add(const std::string& name, const Shape& shape, double scale = 0.3) {
    tensors_[name] = random_tensor(shape, std::hash<std::string>()(name), scale);
  }
  void linear(const std::string& name, int64_t in, int64_t out, bool bias = true) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void norm(const std::string& name, int64_t width) {
    tensors_[name + ".weight"] = 1.0 + random_tensor({width}, std::hash<std::string>()(name), 0.1);
  }
  void attention(const std::string& name, int64_t width, int64_t heads) {
    linear(name + ".q_proj", width, heads * kTinyHead, false);
    linear(name + ".k_proj", width, kTinyKvHeads * kTinyHead, false);
    linear(name + ".v_proj", width, kTinyKvHeads * kTinyHead, false);
    linear(name + ".o_proj", heads * kTinyHead, width, false);
    norm(name + ".q_norm", kTinyHead);
    norm(name + ".k_norm", kTinyHead);
  }
  void mlp(const std::string& name, int64_t width) {
    linear(name + ".gate_proj", width, kTinyMlp, false);
    linear(name + ".up_proj", width, kTinyMlp, false);
    linear(name + ".down_proj", kTinyMlp, width, false);
  }
  void encoder_stack(const std::string& name) {
    for (int64_t index = 0; index < kTinyLayers; ++index) {
      const std::string layer = name + ".layers." + std::to_string(index);
      norm(layer + ".input_layernorm", kTinyEncoder);
      norm(layer + ".post_attention_layernorm", kTinyEncoder);
      attention(layer + ".self_attn", kTinyEncoder, 4);
      mlp(layer + ".mlp", kTinyEncoder);
    }
    norm(name + ".norm", kTinyEncoder);
  }
  void decoder() {
    const int64_t hidden = size_.hidden();
    add("decoder.proj_in.1.weight", {hidden, 3 * kTinyLatent, 2});
    add("decoder.proj_in.1.bias", {hidden});
    add("decoder.proj_out.1.weight", {hidden, kTinyLatent, 2}, 0.1);
    add("decoder.proj_out.1.bias", {kTinyLatent});
    for (const std::string time : {"decoder.time_embed", "decoder.time_embed_r"}) {
      linear(time + ".linear_1", kTinyFrequencies, hidden);
      linear(time + ".linear_2", hidden, hidden);
      linear(time + ".time_proj", hidden, 6 * hidden);
    }
    linear("decoder.condition_embedder", kTinyEncoder, hidden);
    for (int64_t index = 0; index < kTinyLayers; ++index) {
      const std::string layer = "decoder.layers." + std::to_string(index);
      for (const char* name : {".self_attn_norm", ".cross_attn_norm", ".mlp_norm"}) norm(layer + name, hidden);
      attention(layer + ".self_attn", hidden, size_.heads());
      attention(layer + ".cross_attn", hidden, size_.heads());
      mlp(layer + ".mlp", hidden);
      add(layer + ".scale_shift_table", {1, 6, hidden});
    }
    norm("decoder.norm_out", hidden);
    add("decoder.scale_shift_table", {1, 2, hidden});
  }
  void condition_encoder() {
    linear("encoder.text_projector", kTinyText, kTinyEncoder, false);
    linear("encoder.lyric_encoder.embed_tokens", kTinyText, kTinyEncoder);
    encoder_stack("encoder.lyric_encoder");
    linear("encoder.timbre_encoder.embed_tokens", kTinyLatent, kTinyEncoder);
    add("encoder.timbre_encoder.special_token", {1, 1, kTinyEncoder});
    encoder_stack("encoder.timbre_encoder");
    add("null_condition_emb", {1, 1, kTinyEncoder});
    add("silence_latent", {1, kTinySilence, kTinyLatent}, 1.0);
  }
  void tokenizer() {
    linear("tokenizer.audio_acoustic_proj", kTinyLatent, kTinyEncoder);
    linear("tokenizer.attention_pooler.embed_tokens", kTinyEncoder, kTinyEncoder);
    add("tokenizer.attention_pooler.special_token", {1, 1, kTinyEncoder});
    encoder_stack("tokenizer.attention_pooler");
    linear("tokenizer.quantizer.project_in", kTinyEncoder, 6);
    linear("tokenizer.quantizer.project_out", 6, kTinyEncoder);
    linear("detokenizer.embed_tokens", kTinyEncoder, kTinyEncoder);
    add("detokenizer.special_tokens", {1, 5, kTinyEncoder});
    encoder_stack("detokenizer");
    linear("detokenizer.proj_out", kTinyEncoder, kTinyLatent);
  }

  TinySize size_;
  Tensors tensors_;
};

inline std::string tiny_config(const TinySize& size) {
  const auto number = [](const char* key, int64_t value) {
    return "\"" + std::string(key) + "\": " + std::to_string(value) + ", ";
  };
  std::string text = "{" + number("hidden_size", size.hidden()) + number("intermediate_size", kTinyMlp) +
                     number("num_hidden_layers", kTinyLayers) + number("num_attention_heads", size.heads()) +
                     number("num_key_value_heads", kTinyKvHeads) + number("head_dim", kTinyHead) +
                     number("in_channels", 3 * kTinyLatent) + number("audio_acoustic_hidden_dim", kTinyLatent) +
                     number("text_hidden_dim", kTinyText) + number("timbre_hidden_dim", kTinyLatent) +
                     number("timbre_fix_frame", kTinyTimbreFrames) + number("sliding_window", kTinyWindow) +
                     number("num_lyric_encoder_hidden_layers", kTinyLayers) +
                     number("num_timbre_encoder_hidden_layers", kTinyLayers) +
                     number("num_attention_pooler_hidden_layers", kTinyLayers) + number("fsq_dim", kTinyEncoder);
  if (size.is_xl) {
    text += number("encoder_hidden_size", kTinyEncoder) + number("encoder_intermediate_size", kTinyMlp) +
            number("encoder_num_attention_heads", 4) + number("encoder_num_key_value_heads", kTinyKvHeads);
  }
  return text +
         "\"patch_size\": 2, \"pool_window_size\": 5, \"fsq_input_levels\": [8, 8, 8, 5, 5, 5], "
         "\"fsq_input_num_quantizers\": 1, \"use_sliding_window\": true, \"rope_theta\": 1000000, "
         "\"rms_norm_eps\": 1e-06, \"attention_bias\": false, \"model_type\": \"acestep\", "
         "\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"is_turbo\": " +
         (size.is_turbo ? "true" : "false") + "}";
}

/// Writes the checkpoint. `change` can modify the tensors before they are written.
inline std::string write_tiny_ace_step(const TinySize& size, const std::function<void(Tensors&)>& change = {}) {
  const std::string directory = fixture_directory();
  Tensors tensors = TinyWriter(size).write();
  if (change) change(tensors);
  write_safetensors(directory + "/model.safetensors", tensors);
  write_file(directory + "/config.json", tiny_config(size));
  return directory;
}

/// Writes and loads a checkpoint.
inline AceStep tiny_ace_step(const TinySize& size, const std::function<void(Tensors&)>& change = {}) {
  return AceStep::load(write_tiny_ace_step(size, change), {at::kCPU, at::kFloat}, Control());
}

}  // namespace carillon::test
