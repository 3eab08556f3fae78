#include "core/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/runtime/error.h"

namespace carillon {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorCode::kBadCheckpoint, path + ": " + std::strerror(errno));
  struct stat status;
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const size_t size = regular ? static_cast<size_t>(status.st_size) : 0;
  void* data = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  const int error = errno;
  ::close(descriptor);
  if (!regular) fail(ErrorCode::kBadCheckpoint, path + ": not a regular file");
  if (size == 0) fail(ErrorCode::kBadCheckpoint, path + ": the file is empty");
  if (data == MAP_FAILED) fail(ErrorCode::kBadCheckpoint, path + ": cannot be mapped: " + std::strerror(error));
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<char*>(data_), size_); }

}  // namespace carillon
