#pragma once
// A Qwen3 checkpoint of a few thousand random weights, for a text encoder or a language model.
#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "test/checkpoint_files.h"
#include "test/test.h"

namespace carillon::test {

/// heads * head_dim is 32, so the attention is wider than the hidden states.
struct TinyQwen3 {
  int64_t vocabulary = 50, hidden = 24, heads = 4, kv_heads = 2, head_dim = 8, intermediate = 40, layers = 2;
};
inline constexpr TinyQwen3 kTinyQwen3;

/// Random weights, scaled to keep signals near one; names start with `prefix`.
inline Tensors tiny_qwen3_weights(const std::string& prefix) {
  const TinyQwen3 size;
  const auto matrix = [](int64_t rows, int64_t columns) {
    return at::randn({rows, columns}) / std::sqrt(static_cast<double>(columns));
  };
  const auto scales = [](int64_t width) { return at::rand({width}) + 0.5; };
  Tensors tensors = {{prefix + "embed_tokens.weight", at::randn({size.vocabulary, size.hidden})},
                     {prefix + "norm.weight", scales(size.hidden)}};
  const int64_t q_rows = size.heads * size.head_dim, kv_rows = size.kv_heads * size.head_dim;
  for (int64_t i = 0; i < size.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    tensors[layer + "input_layernorm.weight"] = scales(size.hidden);
    tensors[layer + "post_attention_layernorm.weight"] = scales(size.hidden);
    tensors[layer + "self_attn.q_proj.weight"] = matrix(q_rows, size.hidden);
    tensors[layer + "self_attn.k_proj.weight"] = matrix(kv_rows, size.hidden);
    tensors[layer + "self_attn.v_proj.weight"] = matrix(kv_rows, size.hidden);
    tensors[layer + "self_attn.o_proj.weight"] = matrix(size.hidden, q_rows);
    tensors[layer + "self_attn.q_norm.weight"] = scales(size.head_dim);
    tensors[layer + "self_attn.k_norm.weight"] = scales(size.head_dim);
    tensors[layer + "mlp.gate_proj.weight"] = matrix(size.intermediate, size.hidden);
    tensors[layer + "mlp.up_proj.weight"] = matrix(size.intermediate, size.hidden);
    tensors[layer + "mlp.down_proj.weight"] = matrix(size.hidden, size.intermediate);
  }
  return tensors;
}

/// Writes the checkpoint to a fresh directory.
inline std::string write_qwen3(const Tensors& tensors) {
  const std::string directory = fixture_directory();
  write_safetensors(directory + "/model.safetensors", tensors);
  write_file(directory + "/config.json",
             R"({"vocab_size": 50, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                 "rope_parameters": {"rope_theta": 10000}, "max_position_embeddings": 64})");
  return directory;
}

}  // namespace carillon::test
