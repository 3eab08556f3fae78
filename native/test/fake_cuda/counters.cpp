#include "counters.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "device.h"
#include "graph.h"
#include "memory.h"

namespace fake_cuda {
namespace {

struct Count {
  int64_t calls = 0, bytes = 0;
};
using Counts = std::map<std::string, Count>;

const bool kTraces = setting("FAKE_CUDA_TRACE", 0) != 0;

std::mutex mutex;  // guards the non-atomic members below
Counts launches, synchronisations, copies_to_device, copies_to_host, choices, sites;
Totals sums;
std::atomic<int64_t> launches_until_fault{setting("FAKE_CUDA_FAULT_AT", -1)};
std::atomic<bool> is_broken{false};
std::atomic<bool> has_kernels{true};
thread_local bool is_part_of_graph = false;

void add(Counts& counts, const std::string& name, size_t bytes = 0) {
  Count& count = counts[name];
  ++count.calls;
  count.bytes += static_cast<int64_t>(bytes);
}

/// The nearest callers outside libtorch, as `file+offset +offset ...` for addr2line.
std::string call_site() {
  constexpr int kDepth = 64, kShown = 4;
  void* frames[kDepth];
  const int depth = backtrace(frames, kDepth);
  std::string text;
  for (int i = 2, shown = 0; i < depth && shown < kShown; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string file = info.dli_fname;
    const auto is_from = [&](const char* library) { return file.find(library) != std::string::npos; };
    if (is_from("libtorch") || is_from("libc10") || is_from("fake_cuda") || is_from("libc.so") ||
        is_from("libstdc++")) {
      continue;
    }
    char offset[32];
    std::snprintf(offset, sizeof offset, "+0x%zx ",
                  static_cast<size_t>(static_cast<char*>(frames[i]) - static_cast<char*>(info.dli_fbase)));
    text += (shown++ == 0 ? file.substr(file.rfind('/') + 1) : "") + offset;
  }
  return text;
}

void list(FILE* out, const char* title, const Counts& counts) {
  std::vector<std::pair<std::string, Count>> rows(counts.begin(), counts.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (const auto& [name, count] : rows) {
    std::fprintf(out, "%-12s %8lld %14lld bytes  %s\n", title, static_cast<long long>(count.calls),
                 static_cast<long long>(count.bytes), name.c_str());
  }
}

void write_report() {
  const std::string path = std::getenv("FAKE_CUDA_REPORT");
  FILE* const out = path == "-" ? stderr : std::fopen(path.c_str(), "w");
  if (out == nullptr) return std::perror("FAKE_CUDA_REPORT");
  const std::lock_guard lock(mutex);
  std::fprintf(out, "%lld launches, %lld on the shared stream, %lld synchronisations\n",
               static_cast<long long>(sums.launches), static_cast<long long>(sums.launches_on_shared_stream),
               static_cast<long long>(sums.synchronisations));
  for (DeviceIndex device = 0; device < device_count(); ++device) {
    std::fprintf(out, "device %d: at most %.1f MB\n", device, static_cast<double>(peak_bytes(device)) / 1e6);
  }
  list(out, "launch", launches);
  list(out, "synchronise", synchronisations);
  list(out, "to device", copies_to_device);
  list(out, "to host", copies_to_host);
  list(out, "choice", choices);
  list(out, "site", sites);
  if (out != stderr) std::fclose(out);
}

const bool reports_at_exit = [] {
  if (std::getenv("FAKE_CUDA_REPORT") != nullptr) std::atexit(write_report);
  return true;
}();

}  // namespace

int64_t setting(const char* name, int64_t fallback) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoll(text) : fallback;
}

PartOfGraph::PartOfGraph() { is_part_of_graph = true; }
PartOfGraph::~PartOfGraph() { is_part_of_graph = false; }

void check_alive() {
  TORCH_CHECK(!is_broken, "CUDA error: an illegal memory access was encountered (fake_cuda: a sticky error)");
}

void count_launch(const std::string& operation) {
  if (launches_until_fault >= 0 && launches_until_fault-- == 0) is_broken = true;
  check_alive();
  TORCH_CHECK(has_kernels, "CUDA error: no kernel image is available for execution on the device (fake_cuda)");
  if (is_part_of_graph || is_capturing()) return;
  const std::lock_guard lock(mutex);
  ++sums.launches;
  if (!has_own_stream()) ++sums.launches_on_shared_stream;
  add(launches, operation);
}

void count_synchronisation(const std::string& cause) {
  check_alive();
  TORCH_CHECK(!is_capturing(), "CUDA error: operation not permitted when stream is capturing (", cause, ")");
  const std::string site = kTraces ? cause + " @ " + call_site() : "";
  const std::lock_guard lock(mutex);
  ++sums.synchronisations;
  add(synchronisations, cause);
  if (kTraces) add(sites, site);
}

void count_copy_to_device(const std::string& what, size_t bytes) {
  const std::lock_guard lock(mutex);
  sums.bytes_to_device += static_cast<int64_t>(bytes);
  add(copies_to_device, what, bytes);
}

void count_copy_to_host(const std::string& what, size_t bytes) {
  const std::lock_guard lock(mutex);
  sums.bytes_to_host += static_cast<int64_t>(bytes);
  add(copies_to_host, what, bytes);
}

void note_choice(const std::string& choice) {
  const std::lock_guard lock(mutex);
  add(choices, choice);
}

}  // namespace fake_cuda

using namespace fake_cuda;

void fake_cuda_totals(Totals* totals) {
  const std::lock_guard lock(mutex);
  *totals = sums;
}

void fake_cuda_fail_after(int64_t count) { launches_until_fault = count; }

void fake_cuda_forget_kernels(bool on) { has_kernels = !on; }

void fake_cuda_repair() {
  launches_until_fault = -1;
  is_broken = false;
}
