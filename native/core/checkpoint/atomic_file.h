#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace carillon {

/// A new file that is at its path whole or not at all: written beside it, flushed to the disk, then renamed over
/// what was there. Every failure is kStorage naming the path and the system's reason; the old file then stays.
class AtomicFile {
 public:
  /// The folder of `path` must exist.
  explicit AtomicFile(const std::string& path);
  /// Removes what was written without commit().
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

/// Writes all of it to an open file, in as many parts as the system takes it; 0, or the errno of a refusal.
int write_all(int descriptor, const void* data, size_t size);

/// A whole file at once.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace carillon
