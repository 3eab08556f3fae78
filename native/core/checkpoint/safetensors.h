#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace carillon {

class MappedFile;

/// "[2, 3]", as errors show shapes.
std::string shape_text(at::IntArrayRef shape);

/// A .safetensors file mapped read-only. Opening checks the whole header: sizes, bounds, overlap and types
/// (https://github.com/huggingface/safetensors#format); any fault is kBadCheckpoint naming file and tensor.
class Safetensors {
 public:
  static Safetensors open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  const std::vector<int64_t>& shape(const std::string& name) const { return entry(name).shape; }

  /// A CPU tensor on the map: no copy, and the map lives as long as the tensor. Read-only: a write faults.
  at::Tensor tensor(const std::string& name) const;

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
