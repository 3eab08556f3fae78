#include "core/adapters/foreign_adapters.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace carillon {
namespace {

/// A rule that recognizes a file by its tensor names: one of them contains the text `contains`, and one of them (the
/// same or another) contains `also_contains`. `description` says what the file is.
struct Signature {
  std::string_view contains, also_contains, description;
};

/// Rules for adapters of models other than ACE-Step 1.5. They apply to tensor names with underscores instead of dots.
/// The first match counts.
constexpr Signature kForeignModels[] = {
    {"speaker_embedder", "", "ACE-Step 1 (3.5B)"},
    {"genre_embedder", "", "ACE-Step 1 (3.5B)"},
    {"lyric_encoder_encoders_", "", "ACE-Step 1 (3.5B)"},
    {"lora_te2_", "", "Stable Diffusion XL"},
    {"input_blocks_", "transformer_blocks_9_", "Stable Diffusion XL"},
    {"down_blocks_", "transformer_blocks_9_", "Stable Diffusion XL"},
    {"input_blocks_", "", "Stable Diffusion"},
    {"output_blocks_", "", "Stable Diffusion"},
    {"down_blocks_", "", "Stable Diffusion"},
    {"up_blocks_", "", "Stable Diffusion"},
    {"text_model_encoder_layers_", "", "a CLIP text encoder"},
    {"joint_blocks_", "", "Stable Diffusion 3"},
    {"double_blocks_", "", "FLUX or HunyuanVideo"},
    {"single_transformer_blocks_", "", "FLUX"},
    {"transformer_blocks_", "img_mod", "Qwen-Image"},
    {"transformer_blocks_", "attn_to_q", "ACE-Step 1 (3.5B) or another diffusion transformer"},
    {"transformer_blocks_", "attn1_to_q", "LTX-Video or another diffusion transformer"},
    {"blocks_0_cross_attn_", "ffn_", "Wan"},
    {"blocks_0_self_attn_", "", "Wan or another diffusion transformer"},
    {"attention_to_q", "adaLN_modulation", "Z-Image or Lumina"},
    {"attention_qkv", "", "Z-Image or Lumina"},
    {"lora_te", "", "a text encoder"},
    {"text_encoders_", "", "a text encoder"},
};

/// Rules for unsupported kinds of adapter and for files that are not adapters. They apply to unchanged tensor names.
constexpr Signature kForeignKinds[] = {
    {"self_attn.q_proj.weight", "", "a whole model"},
    {"model.diffusion_model.", "", "a whole model"},
    {".oft_blocks", "", "an OFT adapter"},
    {".oft_diag", "", "an OFT adapter"},
    {".oft_r", "", "an OFT adapter"},
    {".boft_", "", "a BOFT adapter"},
    {".a1.weight", ".b1.weight", "a GLoRA adapter"},
    {".vera_lambda", "", "a VeRA adapter"},
    {".diff", "", "differences of whole weights"},
    {"string_to_param", "", "a textual inversion"},
    {"emb_params", "", "a textual inversion"},
    {"exp_avg", "", "the state of an optimizer"},
};

/// Endings of tensors that change more than the weight of a projection, or change it in another way. The first match
/// counts.
constexpr std::pair<std::string_view, std::string_view> kUnsupportedTensors[] = {
    {".lora_B.bias", "a bias of the LoRA (lora_bias)"},
    {".diff_b", "a trained bias"},
    {".b_norm", "a trained bias"},
    {".bias", "a trained bias"},
    {".w_norm", "a trained normalization"},
    {".diff", "the change of a whole weight"},
    {".set_weight", "a whole weight"},
    {".trainable_tokens_delta", "a trained token"},
    {".lora_embedding_A", "a LoRA of an embedding"},
    {".lora_embedding_B", "a LoRA of an embedding"},
    {".lora_E", "a tensor of AdaLoRA"},
    {".lora_diag", "a tensor of KaSA"},
    {".weight", "a whole weight (modules_to_save)"}};

/// Texts in tensor names that identify an adapter of any model.
constexpr std::string_view kAdapterParts[] = {".lora_", ".lokr_", ".hada_", ".ia3_l", ".on_input"};

bool any_contains(const std::vector<std::string>& names, std::string_view text) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.find(text) != std::string::npos; });
}

template <size_t Count>
std::optional<std::string> first_match(const Signature (&signatures)[Count], const std::vector<std::string>& names) {
  for (const auto& [contains, also_contains, description] : signatures) {
    if (any_contains(names, contains) && any_contains(names, also_contains)) return std::string(description);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> describe_foreign_file(const std::vector<std::string>& names) {
  const bool is_adapter = std::any_of(std::begin(kAdapterParts), std::end(kAdapterParts),
                                      [&](std::string_view part) { return any_contains(names, part); });
  if (!is_adapter) return first_match(kForeignKinds, names);
  std::vector<std::string> flat = names;
  for (auto& name : flat) std::replace(name.begin(), name.end(), '.', '_');
  const auto model = first_match(kForeignModels, flat);
  return model ? std::optional("an adapter of " + *model) : std::nullopt;
}

std::optional<std::string> describe_unsupported_tensor(const std::string& name) {
  for (const auto& [ending, description] : kUnsupportedTensors) {
    if (name.ends_with(ending)) return std::string(description);
  }
  return std::nullopt;
}

}  // namespace carillon
