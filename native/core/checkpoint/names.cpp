#include "core/checkpoint/names.h"

#include <string_view>
#include <utility>

namespace carillon {

namespace {

bool starts_with(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string canonical_prefix(const std::string& part, const std::string& name) {
  if (part == "transformer") return "decoder.";
  if (part == "audio_tokenizer") return "tokenizer.";
  if (part == "audio_token_detokenizer") return "detokenizer.";
  return name == "null_condition_emb" || name == "silence_latent" ? "" : "encoder.";
}

}  // namespace

std::string canonical_name_from_diffusers(const std::string& part, const std::string& name) {
  static constexpr std::pair<std::string_view, std::string_view> kProjections[] = {
      {".to_q.", ".q_proj."},     {".to_k.", ".k_proj."},   {".to_v.", ".v_proj."},
      {".to_out.0.", ".o_proj."}, {".norm_q.", ".q_norm."}, {".norm_k.", ".k_norm."}};
  std::string canonical = canonical_prefix(part, name) + name;
  for (const auto& [diffusers, original] : kProjections) replace_all(canonical, diffusers, original);
  if (starts_with(canonical, "decoder.proj_in_conv.")) replace_all(canonical, ".proj_in_conv.", ".proj_in.1.");
  if (starts_with(canonical, "decoder.proj_out_conv.")) replace_all(canonical, ".proj_out_conv.", ".proj_out.1.");
  return canonical;
}

std::string canonical_name(const std::string& name) {
  constexpr std::string_view kPrefix = "model.";
  return starts_with(name, kPrefix) ? name.substr(kPrefix.size()) : name;
}

}  // namespace carillon
