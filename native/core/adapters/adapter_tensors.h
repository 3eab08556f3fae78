#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/checkpoint/tensor_file.h"

namespace carillon {

/// Parsed name of a tensor of an adapter file.
struct AdapterTensorName {
  std::string module;  // module name as in the file
  std::string part;    // lora_A, lora_B, magnitude, alpha, lokr_w1, hada_w1_a, ...; the same in all formats
};

/// Parses the name of a tensor of `file`. Returns nullopt if the tensor is not part of an adapter. Names may end with
/// `.weight`, `.NAME` or `.NAME.weight`, where NAME is the name of the adapter.
std::optional<AdapterTensorName> parse_adapter_tensor(const TensorFile& file, const std::string& name);

/// Finds the projection that a module name in an adapter file refers to. Names may have the prefixes of PEFT, ComfyUI,
/// diffusers, LyCORIS or kohya, or none.
class ProjectionIndex {
 public:
  explicit ProjectionIndex(const std::vector<AdapterTarget>& targets);

  /// Returns nullptr if no projection matches.
  const AdapterTarget* find(const std::string& module) const;

 private:
  std::map<std::string, AdapterTarget> by_flat_name_;
};

/// Tensors of one module of an adapter file, indexed by part (AdapterTensorName::part). The getters return copies, so
/// the tensors outlive the file. They throw kBadCheckpoint with the file and the tensor if a tensor is not
/// floating-point or not finite.
class ModuleTensors {
 public:
  ModuleTensors(const TensorFile& file, std::string module) : file_(file), module_(std::move(module)) {}

  const std::string& module() const { return module_; }  // module name as in the file
  const std::map<std::string, std::string>& names() const { return names_; }  // maps parts to tensor names
  void add(const std::string& part, const std::string& name);

  /// Kind of adapter; nullopt if no part identifies it. Throws if parts belong to two kinds.
  std::optional<AdapterKind> kind() const;
  bool has(const std::string& part) const { return names_.count(part) != 0; }
  /// Tensor of a part. Throws if the part is missing.
  at::Tensor get(const std::string& part) const;
  /// Value of a part with one element; nullopt if it is missing.
  std::optional<double> number(const std::string& part) const;
  /// Returns the product `left` * `right` of two parts. The product is stored as its two factors.
  AdapterMatrix product(const std::string& left, const std::string& right) const;
  /// Returns the LoKr factor `name`. If the file has no tensor `name`, the factor is the product NAME_a * NAME_b.
  AdapterMatrix factor(const std::string& name) const;
  /// Returns LoHa factor N, where `number` is "1" or "2": hada_wN_a * hada_wN_b. If the file has a Tucker core hada_tN,
  /// the factor is hada_wN_a^T * hada_tN * hada_wN_b.
  AdapterMatrix hadamard_factor(const std::string& number) const;
  /// Returns the DoRA norms: [out, 1] if they are norms of rows, [1, in] if they are norms of columns.
  at::Tensor magnitude(const std::string& part, const AdapterTarget& target) const;
  /// Returns the IA3 factors in float32: [out, 1] if each row of the weight has a factor, else [1, in].
  at::Tensor gains(const std::string& part, const AdapterTarget& target) const;
  /// Whether one of the factors is all zero, so that the module does not change its weight.
  bool adds_nothing() const;

  /// Throws unless [rows, columns] is the shape of the target's weight.
  void require_fit(const AdapterTarget& target, int64_t rows, int64_t columns) const;
  /// Throws if the module has a tensor for `part`. The message ends with `why`.
  void require_absent(const std::string& part, const std::string& why) const;

 private:
  at::Tensor get_matrix(const std::string& part) const;
  [[noreturn]] void refuse(const std::string& part, const std::string& what) const;

  const TensorFile& file_;
  std::string module_;
  std::map<std::string, std::string> names_;
};

}  // namespace carillon
