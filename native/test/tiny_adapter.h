#pragma once
// Adapters for the DiT of tiny_ace_step.h, in the file formats of various programs.
#include <functional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "test/checkpoint_files.h"
#include "test/test.h"
#include "test/tiny_ace_step.h"

namespace carillon::test {

inline const std::string kQ = "layers.0.self_attn.q_proj";  // [32, 32]

/// Reads an adapter file for the DiT of tiny_ace_step({}).
inline Adapter read(const std::string& path) {
  static const std::vector<AdapterTarget> targets = adapter_targets(tiny_ace_step({}).dit);
  return read_adapter(path, targets);
}

constexpr int64_t kTinyRank = 3;
constexpr double kTinyAlpha = 6;

/// Values that are exact in float32, float16 and bfloat16.
inline at::Tensor exact_values(at::IntArrayRef shape, uint64_t seed, double scale = 0.25) {
  return (random_tensor(shape, seed, scale) * 64).round() / 64;
}

/// The attention projections of a DiT.
inline std::vector<AdapterTarget> attention_of(const Dit& dit) {
  std::vector<AdapterTarget> targets;
  for (const auto& target : adapter_targets(dit)) {
    if (target.name.find("_attn.") != std::string::npos) targets.push_back(target);
  }
  return targets;
}

/// A LoRA of rank kTinyRank for `targets`. `key(module, part)` names the tensors. A part is "lora_A" or "lora_B".
inline Tensors lora_tensors(const std::vector<AdapterTarget>& targets,
                            const std::function<std::string(const std::string&, const std::string&)>& key) {
  Tensors tensors;
  for (const auto& target : targets) {
    const uint64_t seed = std::hash<std::string>()(target.name);
    tensors[key(target.name, "lora_A")] = exact_values({kTinyRank, target.in}, seed);
    tensors[key(target.name, "lora_B")] = exact_values({target.out, kTinyRank}, seed + 1);
  }
  return tensors;
}

inline std::string peft_key(const std::string& module, const std::string& part) {
  return "base_model.model." + module + "." + part + ".weight";
}

inline std::string peft_config(const std::string& more = "") {
  return R"({"peft_type": "LORA", "r": 3, "lora_alpha": 6, "target_modules": ["q_proj"])" + more + "}";
}

/// Writes a PEFT folder and returns its path.
inline std::string write_peft(const Tensors& tensors, const std::string& config = peft_config()) {
  const std::string folder = fixture_directory();
  write_file(folder + "/adapter_config.json", config);
  write_safetensors(folder + "/adapter_model.safetensors", tensors);
  return folder;
}

/// Writes a single file and returns its path.
inline std::string write_single(const Tensors& tensors, const std::string& metadata = "{}") {
  const std::string path = fixture_directory() + "/style.safetensors";
  write_safetensors(path, tensors, metadata);
  return path;
}

/// LyCORIS name of a module.
inline std::string lycoris_name(std::string module) {
  for (char& character : module) character = character == '.' ? '_' : character;
  return "lycoris_" + module;
}

}  // namespace carillon::test
