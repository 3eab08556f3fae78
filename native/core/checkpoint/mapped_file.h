#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace carillon {

/// A whole file mapped read-only and privately; unmapped with the last owner.
class MappedFile {
 public:
  /// Throws kBadCheckpoint naming the path where the file cannot be opened or mapped.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_;
  size_t size_;
};

}  // namespace carillon
