#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/file_io.h"
#include "kernels/matrix.h"

namespace carillon {

/// Shape as text for errors: "[2, 3]".
std::string shape_text(at::IntArrayRef shape);

/// A file of named tensors, mapped read-only. Opening a file validates its whole header; errors are kBadCheckpoint and
/// name the file and the tensor.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  const std::vector<int64_t>& shape(const std::string& name) const { return entry(name).shape; }
  /// Metadata of a safetensors file; empty for other formats.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// A tensor on the CPU. It is a view of the mapped file, unless its type must be converted. The view keeps the file
  /// mapped and must not be written to, because a write faults. Throws kBadCheckpoint if no tensor has this name.
  virtual at::Tensor tensor(const std::string& name) const = 0;
  /// The codes of a quantized matrix; nullopt if the matrix is stored as floating-point numbers. A code may have more
  /// bits than in the file.
  virtual std::optional<kernels::Matrix> codes(const std::string&) const { return std::nullopt; }
  /// Whether the format drops leading dimensions of size 1.
  virtual bool drops_leading_ones() const { return false; }

 protected:
  struct Entry {
    uint32_t type;  // at::ScalarType, or for GGUF files the type number of GGUF
    std::vector<int64_t> shape;
    size_t begin = 0, size = 0;  // bytes, from the start of the file
  };

  explicit TensorFile(const std::string& path) : path_(path), file_(MappedFile::open(path)) {}
  const Entry& entry(const std::string& name) const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// A .safetensors file (https://github.com/huggingface/safetensors#format). Bounds, overlap and types are checked.
class Safetensors : public TensorFile {
 public:
  explicit Safetensors(const std::string& path);
  at::Tensor tensor(const std::string& name) const override;
};

/// Writes a .safetensors file atomically. The tensors may be on any device and have any layout. In the file, their
/// elements are aligned and there are no gaps between them. Throws kStorage naming the path if writing fails.
void save_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

/// A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), as published by acestep.cpp. Its tensors
/// have their original names and the types F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K.
class Gguf : public TensorFile {
 public:
  explicit Gguf(const std::string& path);
  at::Tensor tensor(const std::string& name) const override;  // dequantizes codes to float32
  /// Matrices of type Q8_0, Q4_0 and Q4_K keep their codes. The codes of Q5_K and Q6_K are widened to 8 bits.
  std::optional<kernels::Matrix> codes(const std::string& name) const override;
  bool drops_leading_ones() const override { return true; }

 private:
  const uint8_t* data(const Entry& entry) const;
};

}  // namespace carillon
