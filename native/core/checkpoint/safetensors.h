#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_file.h"

namespace carillon {

class MappedFile;

/// A .safetensors file mapped read-only. Opening checks the whole header: sizes, bounds, overlap and types
/// (https://github.com/huggingface/safetensors#format); any fault is kBadCheckpoint naming file and tensor.
class Safetensors : public TensorFile {
 public:
  static Safetensors open(const std::string& path);

  const std::string& path() const override { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::vector<std::string> names() const override;
  bool has(const std::string& name) const override { return entries_.count(name) != 0; }
  const std::vector<int64_t>& shape(const std::string& name) const override { return entry(name).shape; }
  at::Tensor tensor(const std::string& name) const override;

 private:
  struct Entry {
    at::ScalarType dtype;
    std::vector<int64_t> shape;
    size_t begin;  // bytes from the start of the file
    size_t size;
  };
  const Entry& entry(const std::string& name) const;
  void read_header();

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Writes a .safetensors file that replaces `path` whole or not at all: offsets without gaps, every element aligned,
/// tensors of any device and layout. Throws kStorage naming the path where the disk refuses.
void save_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace carillon
