#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace carillon::test {

/// Simulates a machine without free memory: limits further allocations to `bytes` while this object lives.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace carillon::test
