/// Graphs: a captured launch is done again, on the same memory, by every replay.
#include "graph.h"

#include <ATen/ATen.h>
#include <ATen/core/GraphImplInterface.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>
#include <utility>
#include <vector>

#include "counters.h"
#include "device.h"
#include "kernels.h"
#include "memory.h"

namespace fake_cuda {
namespace {

class Graph;
thread_local Graph* captured = nullptr;

class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs&) {}

  void capture_begin(c10::MempoolId_t, at::GraphCaptureMode) override {
    TORCH_CHECK(captured == nullptr, "CUDA error: the thread captures a graph already");
    TORCH_CHECK(has_own_stream(), "CUDA graphs must be captured on a non-default stream");
    captured = this;
  }
  void capture_end() override {
    captured = nullptr;
    for (auto step = overwritten_.rbegin(); step != overwritten_.rend(); ++step) {
      host_alias(step->first).copy_(step->second);
    }
    overwritten_.clear();
    for (const at::Tensor& result : results_) {
      if (result.numel() > 0) std::memset(kernel_address(result.storage().data()), 0xff, result.storage().nbytes());
    }
  }
  void instantiate() override {}
  void replay() override {
    count_launch("graph");
    const at::AutoDispatchBelowADInplaceOrView below;
    const PartOfGraph uncounted;
    for (const auto& work : launches_) work();
  }
  void reset() override {
    launches_.clear();
    results_.clear();
  }
  c10::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

  std::vector<std::pair<at::Tensor, at::Tensor>> overwritten_;  // a tensor of the device, what it held
  std::vector<std::function<void()>> launches_;
  std::vector<at::Tensor> results_;
};

}  // namespace

bool is_capturing() { return captured != nullptr; }

void refuse_in_graph(const char* what) {
  TORCH_CHECK(captured == nullptr, "fake_cuda: ", what, " in a graph that is captured");
}

void note_overwritten(const at::Tensor& tensor) {
  if (tensor.numel() > 0) captured->overwritten_.emplace_back(tensor, host_alias(tensor).clone());
}

void note_launch(std::function<void()> work, std::vector<at::Tensor> results) {
  captured->launches_.push_back(std::move(work));
  captured->results_.insert(captured->results_.end(), results.begin(), results.end());
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

namespace at {
using fake_cuda::Graph;
REGISTER_GRAPH_IMPL(CUDA, Graph)
}  // namespace at
