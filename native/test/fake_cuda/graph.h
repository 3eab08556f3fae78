#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace fake_cuda {

/// Whether the calling thread is capturing a graph. Captured launches run and are also recorded for replays. The end of
/// the capture fills their results with NaN or set bits, and undoes their writes to older tensors.
bool is_capturing();

/// Throws during capture, because replays would read host memory that may have been freed.
void refuse_in_graph(const char* what);

/// Call this during capture, before a launch that writes to `tensor`.
void note_overwritten(const at::Tensor& tensor);
/// Records the work of a captured launch for replays. `results` have no valid content until the first replay.
void note_launch(std::function<void()> work, std::vector<at::Tensor> results);

/// Launches a fake kernel: `compute` makes the result on the host. The result gets the dtype and device of `like`.
at::Tensor launch(const char* name, const at::Tensor& like, std::function<at::Tensor()> compute);

}  // namespace fake_cuda
