#include "core/runtime/cuda_graph.h"

#include <ATen/DynamicLibrary.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <type_traits>

namespace carillon {
namespace {

/// Functions of at::cuda::CUDAGraph, looked up by name in libtorch_cuda. Linking that library, or including its header,
/// would tie the core to one build of libtorch. The look-up works with builds for the CPU and for any CUDA version.
struct CudaGraphs {
  void (*construct)(void* graph, bool keep_graph);
  void (*destroy)(void* graph);
  void (*capture_begin)(void* graph, c10::MempoolId_t, int mode);
  void (*capture_end)(void* graph);
  void (*replay)(void* graph);

  /// The CUDA graph functions of libtorch; null if it lacks one of them.
  static const CudaGraphs* get() {
    static const CudaGraphs* const all = load();
    return all;
  }

 private:
  static const CudaGraphs* load() try {
    at::DynamicLibrary library("libtorch_cuda.so", nullptr, /*leak_handle=*/true);
    auto* const all = new CudaGraphs;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.sym(name));
    };
    find(all->construct, "_ZN2at4cuda9CUDAGraphC1Eb");
    find(all->destroy, "_ZN2at4cuda9CUDAGraphD1Ev");
    find(all->capture_begin, "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
    find(all->capture_end, "_ZN2at4cuda9CUDAGraph11capture_endEv");
    find(all->replay, "_ZN2at4cuda9CUDAGraph6replayEv");
    return all;
  } catch (const c10::Error&) {
    return nullptr;
  }
};

class CudaGraph final : public LaunchGraph {
 public:
  explicit CudaGraph(const CudaGraphs& cuda) : cuda_(cuda) { cuda_.construct(graph_, false); }
  ~CudaGraph() override { cuda_.destroy(graph_); }

  // Captures only this thread, because other threads may allocate memory during the capture.
  void begin() { cuda_.capture_begin(graph_, {0, 0}, kCaptureModeThreadLocal); }
  void end() { cuda_.capture_end(graph_); }
  /// Ends a failed capture. Ending it causes a second error, which is ignored because the first one names the cause.
  void end_failed() try { end(); } catch (const c10::Error&) {}
  void replay() override { cuda_.replay(graph_); }

 private:
  static constexpr int kCaptureModeThreadLocal = 1;  // cudaStreamCaptureModeThreadLocal
  const CudaGraphs& cuda_;
  alignas(std::max_align_t) std::byte graph_[4096];  // a CUDAGraph has 448 bytes in libtorch 2.14
};

/// Selects another stream for the thread while this object lives, because capture does not work on the shared default
/// stream.
class OtherStream {
 public:
  explicit OtherStream(const at::Device& device)
      : guard_(device.type()), before_(guard_.exchangeStream(guard_.getStreamFromGlobalPool(device))) {}
  ~OtherStream() { guard_.exchangeStream(before_); }

 private:
  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream before_;
};

}  // namespace

std::unique_ptr<LaunchGraph> LaunchGraph::capture(const at::Device& device, const std::function<void()>& work) {
  const CudaGraphs* const cuda = device.is_cuda() ? CudaGraphs::get() : nullptr;
  if (cuda == nullptr) return nullptr;
  const c10::DeviceGuard on_device(device);
  const OtherStream stream(device);
  auto graph = std::make_unique<CudaGraph>(*cuda);
  graph->begin();
  try {
    work();
  } catch (const c10::OutOfMemoryError&) {
    graph->end_failed();
    return nullptr;  // a graph needs extra memory; direct execution may still fit
  } catch (...) {
    graph->end_failed();
    throw;
  }
  graph->end();
  return graph;
}

}  // namespace carillon
