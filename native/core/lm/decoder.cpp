#include "core/lm/decoder.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>

#include <utility>

#include "core/runtime/cuda_graph.h"
#include "core/runtime/device.h"

namespace carillon {
namespace {

class CausalDecoder : public Decoder {
 public:
  CausalDecoder(const CausalLm& model, int64_t rows, int64_t max_tokens)
      : model_(model), cache_(model.make_cache(rows, max_tokens)) {
    if (is_on_gpu()) inputs_ = at::zeros({2, rows}, at::TensorOptions(at::kLong).device(model.placement().device));
  }

  at::Tensor feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) override {
    return is_on_gpu() && ids.size(1) == 1 ? step(ids, rows) : model_.feed(ids, rows, cache_);
  }
  at::Tensor logits(const at::Tensor& hidden, int64_t first, int64_t count) override {
    return model_.logits(hidden, first, count);
  }
  void copy_row(int64_t from, int64_t to) override { cache_.copy_row(from, to); }
  void clear_row(int64_t row) override { cache_.truncate(row, 0); }
  std::optional<OnDevice> on_device() override {
    return is_on_gpu() ? std::optional<OnDevice>({model_, cache_}) : std::nullopt;
  }

 private:
  bool is_on_gpu() const { return model_.placement().device.is_cuda(); }

  /// Feeds one id to each of `rows`. The first call runs directly; later calls replay a graph. All other rows of the
  /// cache get id 0, which their next id overwrites.
  at::Tensor step(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) {
    const at::AutoDispatchBelowADInplaceOrView inference;
    const at::Device device = model_.placement().device;
    const c10::DeviceGuard guard(device);
    inputs_.copy_(upload(inputs(ids, rows), device));
    const at::Tensor hidden = graph_ ? replay() : step_all();
    for (const int64_t row : rows) cache_.extend(row, 1);
    // Captures a graph after the first step, which has initialised kernels and workspaces.
    if (!std::exchange(has_stepped_, true)) graph_ = LaunchGraph::capture(device, [this] { hidden_ = step_all(); });
    if (static_cast<int64_t>(rows.size()) == cache_.rows()) return hidden;  // `rows` then lists all rows in order
    return hidden.index_select(0, upload(at::tensor(rows, at::kLong), device));
  }

  at::Tensor step_all() { return model_.step(inputs_[0], inputs_[1], cache_); }

  at::Tensor replay() {
    graph_->replay();
    return hidden_;
  }

  /// Returns ids and positions for all rows of the cache: int64 [2, rows] on the host.
  at::Tensor inputs(const at::Tensor& ids, c10::ArrayRef<int64_t> rows) const {
    const at::Tensor fed = at::zeros({2, cache_.rows()}, at::kLong);
    auto* const id = fed.mutable_data_ptr<int64_t>();
    auto* const position = id + cache_.rows();
    for (int64_t row = 0; row < cache_.rows(); ++row) {
      position[row] = std::min(cache_.length(row), cache_.max_tokens() - 1);  // a full row gets its last position
    }
    for (size_t i = 0; i < rows.size(); ++i) id[rows[i]] = ids.const_data_ptr<int64_t>()[i];
    return fed;
  }

  const CausalLm& model_;
  KvCache cache_;
  at::Tensor inputs_;  // int64 [2, rows] on the device: inputs of a step
  at::Tensor hidden_;  // [rows, H]: output of a replay
  bool has_stepped_ = false;
  std::unique_ptr<LaunchGraph> graph_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const CausalLm& model, int64_t rows, int64_t max_tokens) {
  return std::make_unique<CausalDecoder>(model, rows, max_tokens);
}

}  // namespace carillon
