#include "core/adapters/adapter_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Maps suffixes of tensor names to part names (AdapterTensorName::part).
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {".lora_A", "lora_A"},
    {".lora_down", "lora_A"},
    {".lora.down", "lora_A"},
    {".lora_linear_layer.down", "lora_A"},
    {".lora_B", "lora_B"},
    {".lora_up", "lora_B"},
    {".lora.up", "lora_B"},
    {".lora_linear_layer.up", "lora_B"},
    {".lora_mid", "lora_mid"},
    {".lora_magnitude_vector", "magnitude"},
    {".alpha", "alpha"},
    {".scalar", "scalar"},
    {".dora_scale", "dora_scale"},
    {".lokr_w1", "lokr_w1"},
    {".lokr_w1_a", "lokr_w1_a"},
    {".lokr_w1_b", "lokr_w1_b"},
    {".lokr_w2", "lokr_w2"},
    {".lokr_w2_a", "lokr_w2_a"},
    {".lokr_w2_b", "lokr_w2_b"},
    {".lokr_t1", "lokr_t1"},
    {".lokr_t2", "lokr_t2"},
    {".hada_w1_a", "hada_w1_a"},
    {".hada_w1_b", "hada_w1_b"},
    {".hada_w2_a", "hada_w2_a"},
    {".hada_w2_b", "hada_w2_b"},
    {".hada_t1", "hada_t1"},
    {".hada_t2", "hada_t2"},
    {".ia3_l", "ia3_l"},
    {".on_input", "on_input"}};

/// LyCORIS names IA3 factors `.weight`, like the weight of any layer. Only the flag `.on_input` in the same module
/// identifies them.
constexpr std::string_view kWeight = ".weight", kIa3Flag = ".on_input";

/// Prefixes of part names that identify the kind of adapter.
constexpr std::pair<std::string_view, AdapterKind> kKinds[] = {{"lora_", AdapterKind::kLora},
                                                                 {"lokr_", AdapterKind::kLokr},
                                                                 {"hada_", AdapterKind::kLoha},
                                                                 {"ia3_", AdapterKind::kIa3},
                                                                 {"on_input", AdapterKind::kIa3}};

/// Prefixes that training programs add to module names, with underscores instead of dots.
constexpr std::string_view kPrefixes[] = {"base_model_model_", "diffusion_model_",  "transformer_", "decoder_",
                                          "lycoris_",          "lora_unet_",        "model_",       "module_",
                                          "_orig_mod_",        "lora_transformer_"};

/// Maps endings of projection names from the diffusers layout to the original layout.
constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
    {"_to_q", "_q_proj"}, {"_to_k", "_k_proj"}, {"_to_v", "_v_proj"}, {"_to_out_0", "_o_proj"}};

/// Replaces dots by underscores. LyCORIS files contain only this form, which cannot be converted back. Therefore all
/// names are compared in this form.
std::string flat(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

bool strip_prefix(std::string& name) {
  for (const auto prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    return true;
  }
  return false;
}

/// Whether `ending` is "", ".weight", ".NAME" or ".NAME.weight".
bool is_plain_ending(std::string_view ending) {
  if (ending.ends_with(kWeight)) ending.remove_suffix(kWeight.size());
  return ending.empty() || (ending != ".bias" && ending.find('.', 1) == std::string_view::npos);
}

}  // namespace

std::optional<AdapterTensorName> parse_adapter_tensor(const TensorFile& file, const std::string& name) {
  for (const auto& [spelling, part] : kParts) {
    const size_t at = name.rfind(spelling);
    if (at == std::string::npos || at == 0) continue;
    const std::string_view ending = std::string_view(name).substr(at + spelling.size());
    if ((ending.empty() || ending.front() == '.') && is_plain_ending(ending)) {
      return AdapterTensorName{name.substr(0, at), std::string(part)};
    }
  }
  const std::string module = name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "";
  if (!module.empty() && file.has(module + std::string(kIa3Flag))) return AdapterTensorName{module, "ia3_weight"};
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
    if (name.ends_with(diffusers)) name.replace(name.size() - diffusers.size(), diffusers.size(), original);
  }
  const auto found = by_flat_name_.find(name);
  return found == by_flat_name_.end() ? nullptr : &found->second;
}

void ModuleTensors::add(const std::string& part, const std::string& name) {
  const auto [entry, is_new] = names_.emplace(part, name);
  if (!is_new) refuse(part, "duplicates '" + name + "'");
}

std::optional<AdapterKind> ModuleTensors::kind() const {
  std::optional<AdapterKind> kind;
  std::string first;
  for (const auto& [part, name] : names_) {
    for (const auto& [beginning, its_kind] : kKinds) {
      if (!part.starts_with(beginning)) continue;
      if (kind && its_kind != *kind) refuse(part, "and '" + first + "' belong to different kinds of adapter");
      first = name;
      kind = its_kind;
    }
  }
  return kind;
}

at::Tensor ModuleTensors::get(const std::string& part) const {
  const auto found = names_.find(part);
  if (found == names_.end()) {
    fail(ErrorCode::kBadCheckpoint, file_.path() + ": tensor '" + module_ + "." + part + "' is missing");
  }
  const at::Tensor tensor = file_.tensor(found->second).clone();
  if (!tensor.is_floating_point()) refuse(part, "is not floating-point");
  if (tensor.numel() == 0) refuse(part, "is empty");
  if (!tensor.isfinite().all().item<bool>()) refuse(part, "contains NaN or infinity");
  return tensor;
}

at::Tensor ModuleTensors::get_matrix(const std::string& part) const {
  const at::Tensor tensor = get(part);
  if (tensor.dim() != 2) refuse(part, "has shape " + shape_text(tensor.sizes()) + ", expected a matrix");
  return tensor;
}

std::optional<double> ModuleTensors::number(const std::string& part) const {
  if (!has(part)) return std::nullopt;
  const at::Tensor tensor = file_.tensor(names_.at(part));
  if (tensor.numel() != 1) refuse(part, "has shape " + shape_text(tensor.sizes()) + ", expected []");
  const auto number = tensor.item<double>();
  if (!std::isfinite(number)) refuse(part, "contains NaN or infinity");
  return number;
}

AdapterMatrix ModuleTensors::product(const std::string& left, const std::string& right) const {
  const AdapterMatrix matrix{get_matrix(left), get_matrix(right)};
  if (matrix.left.size(1) != matrix.right.size(0)) {
    refuse(left, "has shape " + shape_text(matrix.left.sizes()) + ", '" + names_.at(right) + "' has " +
                     shape_text(matrix.right.sizes()) + ": the ranks differ");
  }
  return matrix;
}

AdapterMatrix ModuleTensors::factor(const std::string& name) const {
  const bool is_product = has(name + "_a") || has(name + "_b");
  return is_product ? product(name + "_a", name + "_b") : AdapterMatrix{get_matrix(name), {}};
}

AdapterMatrix ModuleTensors::hadamard_factor(const std::string& number) const {
  const std::string left = "hada_w" + number + "_a", right = "hada_w" + number + "_b", core = "hada_t" + number;
  if (!has(core)) return product(left, right);
  const at::Tensor a = get_matrix(left), b = get_matrix(right), stored = get(core);
  if (stored.numel() != a.size(0) * b.size(0) || stored.dim() < 2 || stored.size(0) != a.size(0)) {
    refuse(core, "has shape " + shape_text(stored.sizes()) + ", expected " + shape_text({a.size(0), b.size(0)}) +
                     ": the adapter changes a convolution, or the ranks differ");
  }
  return {at::matmul(a.t().to(at::kFloat), stored.view({a.size(0), b.size(0)}).to(at::kFloat)), b};
}

at::Tensor ModuleTensors::magnitude(const std::string& part, const AdapterTarget& target) const {
  const at::Tensor stored = get(part);
  if (stored.dim() == 1 && stored.size(0) == target.out) return stored.view({-1, 1});
  const std::vector<int64_t> rows = {target.out, 1}, columns = {1, target.in};
  if (stored.sizes() != rows && stored.sizes() != columns) {
    refuse(part, "has shape " + shape_text(stored.sizes()) + ", expected " + shape_text(rows) + " or " +
                     shape_text(columns) + " for " + target.name);
  }
  return stored;
}

at::Tensor ModuleTensors::gains(const std::string& part, const AdapterTarget& target) const {
  const at::Tensor stored = get(part).to(at::kFloat);
  // Whether the factors scale inputs or outputs: the shape decides in PEFT files, a flag in LyCORIS files.
  const bool is_peft = part == "ia3_l";
  const bool on_input =
      is_peft ? stored.dim() == 2 && stored.size(0) == 1 && target.out != 1 : number("on_input") != 0.0;
  const int64_t expected = on_input ? target.in : target.out;
  if (stored.numel() != expected) {
    refuse(part, "has shape " + shape_text(stored.sizes()) + ", expected " + std::to_string(expected) +
                     " numbers for the " + (on_input ? "inputs" : "outputs") + " of " + target.name +
                     ": the adapter was made for another model");
  }
  return on_input ? stored.view({1, -1}) : stored.view({-1, 1});
}

bool ModuleTensors::adds_nothing() const {
  constexpr const char* kFactors[] = {"lora_A",    "lora_B",    "lokr_w1",   "lokr_w1_a", "lokr_w1_b",
                                      "lokr_w2",   "lokr_w2_a", "lokr_w2_b", "lokr_t2",   "hada_w1_a",
                                      "hada_w1_b", "hada_w2_a", "hada_w2_b", "hada_t1",   "hada_t2",
                                      "ia3_weight", "scalar"};
  return std::any_of(std::begin(kFactors), std::end(kFactors),
                     [&](const char* factor) { return has(factor) && AdapterMatrix{get(factor), {}}.is_zero(); });
}

void ModuleTensors::require_fit(const AdapterTarget& target, int64_t rows, int64_t columns) const {
  if (rows == target.out && columns == target.in) return;
  fail(ErrorCode::kBadCheckpoint, file_.path() + ": the tensors of '" + module_ + "' change a weight of shape " +
                                      shape_text({rows, columns}) + ", but " + target.name + " of this model has " +
                                      shape_text({target.out, target.in}) + ": the adapter was made for another model");
}

void ModuleTensors::require_absent(const std::string& part, const std::string& why) const {
  if (has(part)) refuse(part, why);
}

void ModuleTensors::refuse(const std::string& part, const std::string& what) const {
  fail(ErrorCode::kBadCheckpoint, file_.path() + ": tensor '" + names_.at(part) + "' " + what);
}

}  // namespace carillon
