#include "core/checkpoint/tensor_names.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace carillon {

namespace {

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

/// Splits "12.rest" into 12 and "rest". Returns -1 and the whole text if the part before the dot is not a number.
std::pair<int, std::string_view> leading_number(std::string_view text) {
  const size_t dot = text.find('.');
  const std::string_view digits = text.substr(0, dot);
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return {-1, text};
  return {number, dot == std::string_view::npos ? "" : text.substr(dot + 1)};
}

bool consume_prefix(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

}  // namespace

std::string canonical_name_from_diffusers(const std::string& part, const std::string& name) {
  static constexpr std::pair<std::string_view, std::string_view> kProjections[] = {
      {".to_q.", ".q_proj."},     {".to_k.", ".k_proj."},   {".to_v.", ".v_proj."},
      {".to_out.0.", ".o_proj."}, {".norm_q.", ".q_norm."}, {".norm_k.", ".k_norm."}};
  std::string canonical = canonical_prefix(part, name) + name;
  for (const auto& [diffusers, original] : kProjections) replace_all(canonical, diffusers, original);
  if (canonical.starts_with("decoder.proj_in_conv.")) replace_all(canonical, ".proj_in_conv.", ".proj_in.1.");
  if (canonical.starts_with("decoder.proj_out_conv.")) replace_all(canonical, ".proj_out_conv.", ".proj_out.1.");
  return canonical;
}

std::string canonical_name(const std::string& name) {
  constexpr std::string_view kPrefix = "model.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::string canonical_name_from_stable_audio(const std::string& name) {
  std::string_view rest = name;
  const bool is_decoder = consume_prefix(rest, "decoder.layers.");
  if (!is_decoder && !consume_prefix(rest, "encoder.layers.")) return name;
  const std::string network = is_decoder ? "decoder." : "encoder.";
  const auto snake_or = [](std::string_view tail, const char* convolution) {
    const bool is_snake = tail == "alpha" || tail == "beta";
    return std::string(is_snake ? "snake1." : convolution) + std::string(tail);
  };
  const auto [layer, in_layer] = leading_number(rest);
  rest = in_layer;
  if (!consume_prefix(rest, "layers.")) return network + snake_or(rest, layer == 0 ? "conv1." : "conv2.");
  const std::string block = network + "block." + std::to_string(layer - 1) + ".";
  const auto [place, in_place] = leading_number(rest);
  rest = in_place;
  if (!consume_prefix(rest, "layers.")) return block + snake_or(rest, is_decoder ? "conv_t1." : "conv1.");
  const auto [part, tail] = leading_number(rest);
  const int unit = place + (is_decoder ? -1 : 1);
  const char* const kinds[] = {"snake1.", "conv1.", "snake2.", "conv2."};
  if (part < 0 || part > 3) return name;
  return block + "res_unit" + std::to_string(unit) + "." + kinds[part] + std::string(tail);
}

}  // namespace carillon
