#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_file.h"

namespace carillon {

class MappedFile;

/// A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), as acestep.cpp publishes the models: the
/// original tensor names, in F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K. Opening checks the whole header; any
/// fault is kBadCheckpoint naming file and tensor.
class Gguf : public TensorFile {
 public:
  static Gguf open(const std::string& path);

  const std::string& path() const override { return path_; }
  std::vector<std::string> names() const override;
  bool has(const std::string& name) const override { return entries_.count(name) != 0; }
  const std::vector<int64_t>& shape(const std::string& name) const override { return entry(name).shape; }
  at::Tensor tensor(const std::string& name) const override;  // codes become float32
  /// Q8_0, Q4_0 and Q4_K keep their codes; Q5_K and Q6_K become codes of 8 bits.
  std::optional<kernels::Matrix> codes(const std::string& name) const override;
  bool drops_leading_ones() const override { return true; }

 private:
  struct Entry {
    uint32_t type;
    std::vector<int64_t> shape;
    size_t begin;  // bytes from the start of the file
  };
  const Entry& entry(const std::string& name) const;
  const uint8_t* data(const Entry& entry) const;
  void read_header();

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace carillon
