#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/checkpoint/tensor_file.h"

namespace carillon {

/// The name of a tensor in an adapter file, taken apart.
struct AdapterTensorName {
  std::string module;  // as the file spells it
  std::string part;    // lora_A, lora_B, magnitude, alpha, dora_scale, lokr_w1, lokr_w1_a, ...; one word per meaning
};

/// nullopt for a tensor that is no part of an adapter. Endings `.weight`, `.NAME` and `.NAME.weight` (NAME is the
/// adapter's) are all the same, and so are lora_A and lora_down, lora_B and lora_up.
std::optional<AdapterTensorName> parse_adapter_tensor(const std::string& name);

/// Finds the projection that a module name of an adapter file means, whoever wrote it: PEFT, ComfyUI, diffusers,
/// LyCORIS, or a name without any prefix.
class ProjectionIndex {
 public:
  explicit ProjectionIndex(const std::vector<AdapterTarget>& targets);

  /// nullptr where there is none.
  const AdapterTarget* find(const std::string& module) const;

 private:
  std::map<std::string, AdapterTarget> by_flat_name_;
};

/// The tensors that an adapter file holds for one module, by part (AdapterTensorName::part). Everything read is
/// floating-point, finite and owned, so that the file may go; kBadCheckpoint names file and tensor otherwise.
class ModuleTensors {
 public:
  ModuleTensors(const Safetensors& file, std::string module) : file_(file), module_(std::move(module)) {}

  const std::map<std::string, std::string>& names() const { return names_; }  // part to the name in the file
  void add(const std::string& part, const std::string& name);

  bool has(const std::string& part) const { return names_.count(part) != 0; }
  /// Throws where it is missing.
  at::Tensor get(const std::string& part) const;
  /// A part of one element; nullopt where it is missing.
  std::optional<double> number(const std::string& part) const;
  /// The matrix `left` times the matrix `right`.
  AdapterMatrix product(const std::string& left, const std::string& right) const;
  /// A factor of LoKr: `name` whole, or `name`_a times `name`_b.
  AdapterMatrix factor(const std::string& name) const;
  /// Norms of rows, stored as [out] or [out, 1], or of columns, [1, in]: [out, 1] or [1, in].
  at::Tensor magnitude(const std::string& part, const AdapterTarget& target) const;
  /// True where any factor is zero and the module therefore adds nothing to its weight.
  bool adds_nothing() const;

  /// Throws unless the change [rows, columns] is that of the target's weight.
  void require_fit(const AdapterTarget& target, int64_t rows, int64_t columns) const;
  /// Throws where the file holds the part.
  void forbid(const std::string& part, const std::string& why) const;

 private:
  at::Tensor get_matrix(const std::string& part) const;
  [[noreturn]] void refuse(const std::string& part, const std::string& what) const;

  const Safetensors& file_;
  std::string module_;  // as the file spells it
  std::map<std::string, std::string> names_;
};

}  // namespace carillon
