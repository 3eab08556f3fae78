#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace carillon {

/// A whole file mapped read-only and privately; unmapped when its last owner is destroyed.
class MappedFile {
 public:
  /// Throws kBadCheckpoint naming the path if the file cannot be opened or mapped.
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

/// Writes a file atomically: temporary file, fsync, rename. On failure throws kStorage with the path and the system's
/// error message, and leaves an existing file unchanged.
class AtomicFile {
 public:
  /// The folder of `path` must exist.
  explicit AtomicFile(const std::string& path);
  /// Removes the temporary file if commit() was not called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void commit();

 private:
  [[noreturn]] void refuse(int error) const;

  std::string path_, temporary_path_;
  int descriptor_;
};

/// Writes all bytes to an open file, in as many calls as needed. Returns 0 or an errno.
int write_all(int descriptor, const void* data, size_t size);

/// Writes a file atomically.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace carillon
