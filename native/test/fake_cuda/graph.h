#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace fake_cuda {

/// Whether the calling thread is capturing a graph. Captured launches run and are recorded for replays. When the
/// capture ends, their results are overwritten with NaN or set bits, and their writes to older tensors are undone.
bool is_capturing();

/// Throws during capture, because replays would read host memory that may have been freed.
void refuse_in_graph(const char* what);

/// During capture, call this before a launch that writes to `tensor`.
void note_overwritten(const at::Tensor& tensor);
/// Records the work of a captured launch for replays. `results` have no valid content until the first replay.
void note_launch(std::function<void()> work, std::vector<at::Tensor> results);

/// Launches a kernel with one result: `compute` runs on the host, and the result gets dtype and device of `like`.
at::Tensor launch(const char* name, const at::Tensor& like, std::function<at::Tensor()> compute);

}  // namespace fake_cuda
