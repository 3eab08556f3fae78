#pragma once
#include <cstdint>
#include <string>

namespace fake_cuda {

/// A setting of the environment (README.md).
int64_t setting(const char* name, int64_t fallback);

/// What the process has asked of its devices so far.
struct Totals {
  int64_t launches = 0;
  int64_t launches_on_shared_stream = 0;
  int64_t synchronisations = 0;
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
};

/// While one of these lives on the thread, launches are parts of a graph, which is one launch.
struct PartOfGraph {
  PartOfGraph();
  ~PartOfGraph();
};

/// Every count throws what a broken device answers; a synchronisation also throws while a graph is captured. A launch that
/// is captured is none yet.
void count_launch(const std::string& operation);
void count_synchronisation(const std::string& cause);
void count_copy_to_device(const std::string& what, size_t bytes);
void count_copy_to_host(const std::string& what, size_t bytes);
/// What libtorch chose by itself, such as an attention backend.
void note_choice(const std::string& choice);

/// Throws once the device has failed for good.
void check_alive();

}  // namespace fake_cuda

/// For tests, which find them in the process by name.
#pragma GCC visibility push(default)
extern "C" {
void fake_cuda_totals(fake_cuda::Totals* totals);
/// The launch after `launches` more is the device's last.
void fake_cuda_fail_after(int64_t launches);
/// The allocation after `allocations` more finds no memory, once.
void fake_cuda_exhaust_after(int64_t allocations);
/// The device is of a generation that libtorch has no kernels for.
void fake_cuda_forget_kernels(bool on);
/// A device that failed works again, as in a new process.
void fake_cuda_mend();
}
#pragma GCC visibility pop
