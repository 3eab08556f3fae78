/// Simulated CUDA graphs. Every replay repeats the captured launches on the same memory.
#include "graph.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>
#include <utility>
#include <vector>

#include "counters.h"
#include "device.h"
#include "kernels.h"
#include "memory.h"

enum cudaStreamCaptureMode : unsigned { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };

namespace at::cuda {

/// Replaces the class of libtorch_cuda: its functions have the same exported names.
struct __attribute__((visibility("default"))) CUDAGraph {
  explicit CUDAGraph(bool keep_graph);
  ~CUDAGraph();
  void capture_begin(c10::MempoolId_t, cudaStreamCaptureMode);
  void capture_end();
  void replay();

  std::vector<std::pair<at::Tensor, at::Tensor>> overwritten;  // device tensor and its previous content
  std::vector<std::function<void()>> launches;
  std::vector<at::Tensor> results;
};

}  // namespace at::cuda

namespace {

thread_local at::cuda::CUDAGraph* captured = nullptr;

}  // namespace

namespace at::cuda {

using namespace fake_cuda;

CUDAGraph::CUDAGraph(bool) {}
CUDAGraph::~CUDAGraph() = default;

void CUDAGraph::capture_begin(c10::MempoolId_t, cudaStreamCaptureMode mode) {
  TORCH_CHECK(captured == nullptr, "CUDA error: the thread captures a graph already");
  TORCH_CHECK(mode == cudaStreamCaptureModeThreadLocal, "fake_cuda: only thread-local capture is simulated");
  TORCH_CHECK(has_own_stream(), "CUDA graphs must be captured on a non-default stream");
  captured = this;
}

void CUDAGraph::capture_end() {
  captured = nullptr;
  for (auto step = overwritten.rbegin(); step != overwritten.rend(); ++step) {
    host_alias(step->first).copy_(step->second);
  }
  overwritten.clear();
  for (const at::Tensor& result : results) {
    if (result.numel() > 0) std::memset(kernel_address(result.storage().data()), 0xff, result.storage().nbytes());
  }
}

void CUDAGraph::replay() {
  count_launch("graph");
  const at::AutoDispatchBelowADInplaceOrView below;
  const PartOfGraph uncounted;
  for (const auto& work : launches) work();
}

}  // namespace at::cuda

namespace fake_cuda {

bool is_capturing() { return captured != nullptr; }

void refuse_in_graph(const char* what) {
  TORCH_CHECK(captured == nullptr, "fake_cuda: ", what, " is not allowed during capture");
}

void note_overwritten(const at::Tensor& tensor) {
  if (tensor.numel() > 0) captured->overwritten.emplace_back(tensor, host_alias(tensor).clone());
}

void note_launch(std::function<void()> work, std::vector<at::Tensor> results) {
  captured->launches.push_back(std::move(work));
  captured->results.insert(captured->results.end(), results.begin(), results.end());
}

at::Tensor launch(const char* name, const at::Tensor& like, std::function<at::Tensor()> compute) {
  count_launch(name);
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::Tensor result = to_device(compute().to(like.scalar_type()), like.device().index());
  if (captured != nullptr) {
    note_launch([result, compute = std::move(compute)] { host_alias(result).copy_(compute()); }, {result});
  }
  return result;
}

}  // namespace fake_cuda
