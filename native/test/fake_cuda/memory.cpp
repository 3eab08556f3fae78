#include "memory.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "counters.h"
#include "device.h"

namespace fake_cuda {
namespace {

const size_t kCapacityBytes = static_cast<size_t>(setting("FAKE_CUDA_MEMORY_MB", 24 << 10)) << 20;
constexpr size_t kAddressSpace = size_t{1} << 38;  // size of a device's address range
constexpr size_t kGranuleBytes = 512;              // block sizes are multiples of it, as in CUDA's allocator
constexpr size_t kPoisonedBytes = 1 << 20;         // bytes to poison at the start of a block; more would be slow
constexpr size_t kReturnedBytes = 4 << 20;         // larger freed blocks return their pages to the system
constexpr int kHostAccessStatus = 86;

/// Memory of one device. An allocation reuses a freed block that is at most a quarter larger than needed.
class Arena {
 public:
  Arena() : seen_(reserve(PROT_NONE)), real_(reserve(PROT_READ | PROT_WRITE)) {}

  bool holds(const void* pointer) const { return pointer >= seen_ && pointer < seen_ + kAddressSpace; }
  char* real(const void* pointer) const { return real_ + (static_cast<const char*>(pointer) - seen_); }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t size = (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
    if (used_ + size > kCapacityBytes) return nullptr;
    size_t offset = top_;
    const auto fit = free_.lower_bound(size);
    if (fit != free_.end() && fit->first <= size + size / 4) {
      std::tie(size, offset) = *fit;
      free_.erase(fit);
    } else if (top_ + size > kAddressSpace) {
      return nullptr;
    } else {
      top_ += size;
    }
    sizes_[offset] = size;
    used_ += size;
    peak_ = std::max(peak_, used_);
    poison(offset, size);
    return seen_ + offset;
  }

  void give_back(void* pointer) {
    const auto offset = static_cast<size_t>(static_cast<char*>(pointer) - seen_);
    const std::lock_guard lock(mutex_);
    const size_t size = sizes_.at(offset);
    poison(offset, size);
    if (size >= kReturnedBytes) madvise(real_ + offset, size, MADV_DONTNEED);
    used_ -= size;
    free_.emplace(size, offset);
  }

  size_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  size_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  static char* reserve(int protection) {
    void* const range = mmap(nullptr, kAddressSpace, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
      std::perror("fake_cuda: mmap");
      std::abort();
    }
    return static_cast<char*>(range);
  }

  /// Fills memory with set bits, which are NaN in every floating type.
  void poison(size_t offset, size_t size) { std::memset(real_ + offset, 0xff, std::min(size, kPoisonedBytes)); }

  char* const seen_;  // address range that the host sees; inaccessible
  char* const real_;  // address range of the same memory for kernels
  mutable std::mutex mutex_;
  size_t top_ = 0, used_ = 0, peak_ = 0;
  std::multimap<size_t, size_t> free_;          // size -> offset
  std::unordered_map<size_t, size_t> sizes_;    // offset -> size
};

/// Memory of a device. The arenas are never destroyed, because tensors may outlive static destruction.
Arena& arena(DeviceIndex device) {
  static Arena* const all = new Arena[static_cast<size_t>(device_count())];
  return all[device];
}

std::atomic<int64_t> allocations_until_exhausted{setting("FAKE_CUDA_OOM_AT", -1)};

void release(void* pointer) {
  if (pointer != nullptr) arena(device_of(pointer)).give_back(pointer);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::kCUDA, current_device());
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    check_alive();
    const bool is_exhausted = allocations_until_exhausted >= 0 && allocations_until_exhausted-- == 0;
    void* const pointer = is_exhausted ? nullptr : arena(device.index()).take(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr, "CUDA out of memory. Tried to allocate ", bytes,
                     " bytes. (fake_cuda)");
    return {pointer, pointer, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(kernel_address(to), kernel_address(from), bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex) override { return {}; }
  void resetAccumulatedStats(DeviceIndex) override {}
  void resetPeakStats(DeviceIndex) override {}
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override {
    return {kCapacityBytes - arena(device).used(), kCapacityBytes};
  }
};

/// Address and size of each block of pinned memory.
std::map<const char*, size_t> pinned_blocks;
std::mutex pinned_mutex;

void unpin(void* pointer) {
  const std::lock_guard lock(pinned_mutex);
  pinned_blocks.erase(static_cast<char*>(pointer));
  std::free(pointer);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    const std::lock_guard lock(pinned_mutex);
    pinned_blocks[static_cast<char*>(pointer)] = bytes;
    return {pointer, pointer, &unpin, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

/// Must not allocate, because the fault may be in the allocator.
void on_fault(int, siginfo_t* info, void*) {
  if (device_of(info->si_addr) < 0) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return;
  }
  constexpr char kMessage[] = "fake_cuda: the host used an address of device memory at:\n";
  (void)!write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  void* frames[48];
  backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
  _exit(kHostAccessStatus);
}

const bool started = [] {
  c10::SetAllocator(c10::kCUDA, &allocator(), 1);
  void* frames[2];
  backtrace(frames, 2);  // loads the unwinder library now, not in the handler
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  return true;
}();

}  // namespace

c10::DeviceAllocator& allocator() {
  static auto* const instance = new Allocator;
  return *instance;
}

c10::Allocator& pinned_allocator() {
  static auto* const instance = new PinnedAllocator;
  return *instance;
}

bool is_pinned(const void* pointer) {
  const std::lock_guard lock(pinned_mutex);
  const auto after = pinned_blocks.upper_bound(static_cast<const char*>(pointer));
  if (after == pinned_blocks.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return static_cast<const char*>(pointer) < begin + bytes;
}

DeviceIndex device_of(const void* pointer) {
  for (DeviceIndex device = 0; device < device_count(); ++device) {
    if (arena(device).holds(pointer)) return device;
  }
  return -1;
}

void* kernel_address(const void* pointer) {
  const DeviceIndex device = device_of(pointer);
  TORCH_CHECK(device >= 0, "fake_cuda: not a device pointer");
  return arena(device).real(pointer);
}

size_t peak_bytes(DeviceIndex device) { return arena(device).peak(); }

}  // namespace fake_cuda

void fake_cuda_exhaust_after(int64_t allocations) { fake_cuda::allocations_until_exhausted = allocations; }
