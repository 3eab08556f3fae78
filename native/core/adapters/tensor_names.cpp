#include "core/adapters/tensor_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace carillon {
namespace {

/// Spellings of the parts of an adapter behind their module, and what each is called here.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {".lora_A", "lora_A"},       {".lora_down", "lora_A"},      {".lora_B", "lora_B"},
    {".lora_up", "lora_B"},      {".lora_mid", "lora_mid"},     {".lora_magnitude_vector", "magnitude"},
    {".alpha", "alpha"},         {".dora_scale", "dora_scale"}, {".lokr_w1", "lokr_w1"},
    {".lokr_w1_a", "lokr_w1_a"}, {".lokr_w1_b", "lokr_w1_b"},   {".lokr_w2", "lokr_w2"},
    {".lokr_w2_a", "lokr_w2_a"}, {".lokr_w2_b", "lokr_w2_b"},   {".lokr_t2", "lokr_t2"}};

/// What programs put before the name of a module, dots as underscores.
constexpr std::string_view kPrefixes[] = {"base_model_model_", "diffusion_model_", "transformer_",
                                          "decoder_",          "lycoris_",         "model_"};

/// The diffusers names of projections.
constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
    {"_to_q", "_q_proj"}, {"_to_k", "_k_proj"}, {"_to_v", "_v_proj"}, {"_to_out_0", "_o_proj"}};

/// LyCORIS writes underscores for dots. That cannot be undone, so all names are compared in this form.
std::string flat(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

bool strip_prefix(std::string& name) {
  for (const auto prefix : kPrefixes) {
    if (name.rfind(prefix, 0) != 0) continue;
    name.erase(0, prefix.size());
    return true;
  }
  return false;
}

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

/// "", ".weight", ".NAME" or ".NAME.weight".
bool is_plain_ending(std::string_view ending) {
  constexpr std::string_view kWeight = ".weight";
  if (ends_with(ending, kWeight)) ending.remove_suffix(kWeight.size());
  return ending.empty() || (ending != ".bias" && ending.find('.', 1) == std::string_view::npos);
}

}  // namespace

std::optional<AdapterTensorName> parse_adapter_tensor(const std::string& name) {
  for (const auto& [spelling, part] : kParts) {
    const size_t at = name.rfind(spelling);
    if (at == std::string::npos || at == 0) continue;
    const std::string_view ending = std::string_view(name).substr(at + spelling.size());
    if ((ending.empty() || ending.front() == '.') && is_plain_ending(ending)) {
      return AdapterTensorName{name.substr(0, at), std::string(part)};
    }
  }
  return std::nullopt;
}

ProjectionIndex::ProjectionIndex(const std::vector<AdapterTarget>& targets) {
  for (const auto& target : targets) by_flat_name_.emplace(flat(target.name), target);
}

const AdapterTarget* ProjectionIndex::find(const std::string& module) const {
  std::string name = flat(module);
  while (strip_prefix(name)) {
  }
  for (const auto& [diffusers, original] : kEndings) {
    if (ends_with(name, diffusers)) name.replace(name.size() - diffusers.size(), diffusers.size(), original);
  }
  const auto found = by_flat_name_.find(name);
  return found == by_flat_name_.end() ? nullptr : &found->second;
}

}  // namespace carillon
