#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace fake_cuda {

/// Whether the calling thread captures a graph. What it launches then is noted for the replays; its results hold numbers
/// until the capture ends, and what it wrote into older tensors is taken back.
bool is_capturing();

/// Throws where a graph is captured: its replays would read memory of the host that may be gone by then.
void refuse_in_graph(const char* what);

/// Before a captured launch writes into `tensor`.
void note_overwritten(const at::Tensor& tensor);
/// What each replay does in place of a captured launch; `results` hold nothing until then.
void note_launch(std::function<void()> work, std::vector<at::Tensor> results);

/// The launch of a kernel with one result: what `compute` makes on the host, of the type and on the device of `like`.
at::Tensor launch(const char* name, const at::Tensor& like, std::function<at::Tensor()> compute);

}  // namespace fake_cuda
