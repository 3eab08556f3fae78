#pragma once
#include <cstdint>
#include <string>

namespace fake_cuda {

/// Value of an environment variable, or `fallback`. README.md lists the variables.
int64_t setting(const char* name, int64_t fallback);

/// Counts of the device operations that the process has run so far.
struct Totals {
  int64_t launches = 0;
  int64_t launches_on_shared_stream = 0;
  int64_t synchronisations = 0;
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
};

/// While an instance exists on the thread, launches belong to a graph, and the whole graph counts as one launch.
struct PartOfGraph {
  PartOfGraph();
  ~PartOfGraph();
};

/// The next four functions count an operation. count_launch and count_synchronisation throw if the device has failed;
/// count_synchronisation also throws during capture. Captured launches do not count until a replay.
void count_launch(const std::string& operation);
void count_synchronisation(const std::string& cause);
void count_copy_to_device(const std::string& what, size_t bytes);
void count_copy_to_host(const std::string& what, size_t bytes);
/// Records a choice by libtorch, such as an attention backend.
void note_choice(const std::string& choice);

/// Throws if the device has failed with a sticky error.
void check_alive();

}  // namespace fake_cuda

/// Functions that tests look up by name in the process.
#pragma GCC visibility push(default)
extern "C" {
void fake_cuda_totals(fake_cuda::Totals* totals);
/// After `launches` more launches the device fails with a sticky error.
void fake_cuda_fail_after(int64_t launches);
/// `allocations` more allocations succeed, the next one fails with out of memory, and later ones succeed again.
void fake_cuda_exhaust_after(int64_t allocations);
/// Simulates a GPU generation for which libtorch has no kernels.
void fake_cuda_forget_kernels(bool on);
/// Clears a sticky error, as a new process would.
void fake_cuda_repair();
}
#pragma GCC visibility pop
