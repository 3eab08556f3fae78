#include "core/checkpoint/file_io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/runtime/error.h"

namespace carillon {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  struct stat status;
  const auto is_regular = [&status](int failed) { return failed == 0 && S_ISREG(status.st_mode); };
  const auto refuse = [&path](const std::string& why) { fail(ErrorCode::kBadCheckpoint, path + ": " + why); };
  // Check the file type before opening, because opening a device can have side effects.
  if (::stat(path.c_str(), &status) == 0 && !is_regular(0)) refuse("not a regular file");
  // O_NONBLOCK, because the path may have become a pipe since the check above, and opening a pipe can block.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) refuse(std::strerror(errno));
  const bool regular = is_regular(::fstat(descriptor, &status));
  const size_t size = regular ? static_cast<size_t>(status.st_size) : 0;
  void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  const int error = errno;
  ::close(descriptor);
  if (!regular) refuse("not a regular file");
  if (size == 0) refuse("the file is empty");
  if (data == MAP_FAILED) refuse(std::string("cannot be mapped: ") + std::strerror(error));
#if defined(MADV_HUGEPAGE)
  ::madvise(data, size, MADV_HUGEPAGE);  // file systems without huge pages ignore this hint
#endif
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }

namespace {

/// A temporary name that no other process of this machine uses.
std::string temporary_sibling(const std::string& path) {
  static std::atomic<int64_t> count = 0;
  return path + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace

int write_all(int descriptor, const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    next += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(path),
      temporary_path_(temporary_sibling(path)),
      descriptor_(::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) refuse(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_path_.c_str());
}

void AtomicFile::refuse(int error) const {
  fail(ErrorCode::kStorage, path_ + " cannot be written: " + std::strerror(error));
}

void AtomicFile::write(const void* data, size_t size) {
  if (const int error = write_all(descriptor_, data, size)) refuse(error);
}

void AtomicFile::commit() {
  // Some file systems report a full disk only at fsync.
  if (::fsync(descriptor_) != 0) refuse(errno);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) refuse(errno);
  ::close(descriptor_);
  descriptor_ = -1;
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace carillon
