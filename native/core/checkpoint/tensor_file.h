#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/matrix.h"

namespace carillon {

/// "[2, 3]", as errors show shapes.
std::string shape_text(at::IntArrayRef shape);

/// A file of named tensors, mapped read-only.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  virtual const std::string& path() const = 0;
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(const std::string& name) const = 0;
  virtual const std::vector<int64_t>& shape(const std::string& name) const = 0;

  /// A CPU tensor, on the map where its type can be used as it is stored: no copy, and the map lives as long as the
  /// tensor. Read-only: a write faults. Throws kBadCheckpoint where there is none of that name.
  virtual at::Tensor tensor(const std::string& name) const = 0;
  /// A matrix that is stored in codes, in at least as many bits; nullopt for one stored in numbers.
  virtual std::optional<kernels::Matrix> codes(const std::string&) const { return std::nullopt; }
  /// Whether the format loses leading dimensions of 1.
  virtual bool drops_leading_ones() const { return false; }
};

}  // namespace carillon
