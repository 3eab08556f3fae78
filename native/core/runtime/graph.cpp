#include "core/runtime/graph.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#if defined(CARILLON_CUDA_GRAPHS)
#include <ATen/cuda/CUDAGraph.h>
#elif __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#define CARILLON_REGISTERED_GRAPHS
#endif

namespace carillon {
namespace {

/// What begins and ends the capture on the current stream.
struct Capture : Graph {
  virtual void begin() = 0;
  virtual void end() = 0;
};

// Other threads go on allocating meanwhile, which only a capture that concerns no thread but its own allows.
#if defined(CARILLON_CUDA_GRAPHS)
struct CudaCapture final : Capture {
  void begin() override { graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph.capture_end(); }
  void replay() override { graph.replay(); }
  at::cuda::CUDAGraph graph;
};

std::unique_ptr<Capture> make_capture(const at::Device& device) {
  return device.is_cuda() ? std::make_unique<CudaCapture>() : nullptr;
}
#elif defined(CARILLON_REGISTERED_GRAPHS)
struct RegisteredCapture final : Capture {
  explicit RegisteredCapture(c10::DeviceType type) : graph(at::create_graph_impl(type)) {}
  void begin() override { graph->capture_begin({0, 0}, at::GraphCaptureMode::ThreadLocal); }
  void end() override { graph->capture_end(); }
  void replay() override { graph->replay(); }
  std::unique_ptr<at::GraphImplInterface> graph;
};

std::unique_ptr<Capture> make_capture(const at::Device& device) {
  return at::has_graph_impl(device.type()) ? std::make_unique<RegisteredCapture>(device.type()) : nullptr;
}
#else
std::unique_ptr<Capture> make_capture(const at::Device&) { return nullptr; }
#endif

/// The stream that all threads share captures nothing; while this lives the thread has another.
class OtherStream {
 public:
  explicit OtherStream(const at::Device& device)
      : guard_(device.type()), before_(guard_.exchangeStream(guard_.getStreamFromGlobalPool(device))) {}
  ~OtherStream() { guard_.exchangeStream(before_); }

 private:
  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream before_;
};

/// A capture that failed cannot end well; its cause says why.
void end_failed(Capture& capture) {
  try {
    capture.end();
  } catch (const c10::Error&) {
  }
}

}  // namespace

std::unique_ptr<Graph> Graph::capture(const at::Device& device, const std::function<void()>& work) {
  std::unique_ptr<Capture> capture = make_capture(device);
  if (capture == nullptr) return nullptr;
  const c10::DeviceGuard on_device(device);
  const OtherStream stream(device);
  capture->begin();
  try {
    work();
  } catch (const c10::OutOfMemoryError&) {
    end_failed(*capture);
    return nullptr;  // a graph has memory of its own; without one there may be enough
  } catch (...) {
    end_failed(*capture);
    throw;
  }
  capture->end();
  return capture;
}

}  // namespace carillon
