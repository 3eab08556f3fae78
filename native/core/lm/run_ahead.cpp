#include "core/lm/run_ahead.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/lm/sampler.h"
#include "core/runtime/device.h"

namespace carillon {
namespace {

/// Number of steps that are queued on the device while the host reads the result of an earlier step. Steps that were
/// queued for rows that have ended are wasted.
constexpr int64_t kQueuedSteps = 4;
/// Minimum number of steps for which a graph is captured.
constexpr int64_t kMinGraphSteps = 16;
constexpr std::chrono::microseconds kPoll{50};

at::Tensor draws_of(const std::vector<RunAheadRow>& rows, const LanguageJob& job, int64_t steps) {
  at::Tensor draws = at::empty({static_cast<int64_t>(rows.size()), steps}, at::kDouble);
  double* next = draws.mutable_data_ptr<double>();
  for (const RunAheadRow& row : rows) {
    for (int64_t step = 0; step < steps; ++step) {
      *next++ = uniform_draw(row.seed, static_cast<uint32_t>(job.stage), row.ids.size() + static_cast<size_t>(step));
    }
  }
  return draws;
}

at::Tensor used_ids(const std::vector<RunAheadRow>& rows, const TokenMask& mask) {
  at::Tensor used = at::zeros({static_cast<int64_t>(rows.size()), mask.last - mask.first + 1}, at::kBool);
  bool* flags = used.mutable_data_ptr<bool>();
  for (const RunAheadRow& row : rows) {
    for (const int32_t id : row.ids) {
      if (id >= mask.first && id <= mask.last) flags[id - mask.first] = true;
    }
    flags += used.size(1);
  }
  return used;
}

/// With guidance, appends a copy of the rows, because the unconditional rows use the values of the conditional rows.
at::Tensor doubled(const at::Tensor& x, bool is_guided) { return is_guided ? at::cat({x, x}) : x; }

}  // namespace

RunAhead::RunAhead(const CausalLm& model, KvCache& cache, const LanguageJob& job, const TokenMask& mask,
                   const std::vector<RunAheadRow>& rows, int64_t steps)
    : model_(model),
      cache_(cache),
      job_(job),
      mask_(mask),
      rows_(static_cast<int64_t>(rows.size())),
      steps_(steps),
      is_guided_(job.cfg_scale > 1.0) {
  const at::Device device = model.placement().device;
  std::vector<int64_t> ids, positions;
  for (const RunAheadRow& row : rows) ids.push_back(row.unfed_id);
  for (int64_t row = 0; row < cache.rows(); ++row) {
    positions.push_back(std::min(cache.length(row), cache.max_tokens() - 1));  // a full row gets its last position
  }
  ids_ = upload(doubled(at::tensor(ids, at::kLong), is_guided_), device);
  positions_ = upload(at::tensor(positions, at::kLong), device);
  chosen_ = at::zeros({rows_}, ids_.options());
  count_ = at::zeros({1}, ids_.options());
  uniforms_ = upload(draws_of(rows, job, steps), device);
  if (job.repetition_penalty != 1.0) is_used_ = upload(used_ids(rows, mask), device);
  host_ids_ = at::empty({steps, rows_}, at::TensorOptions(at::kLong).pinned_memory(device.is_cuda()));
  for (int64_t i = 0; device.is_cuda() && i <= kQueuedSteps; ++i) copied_.emplace_back(device.type());
}

/// Logits of the next token after penalty, guidance and mask: float32 [rows, columns of the mask].
at::Tensor RunAhead::scores_of(const at::Tensor& hidden) const {
  const at::Tensor logits = model_.logits(hidden, mask_.first, mask_.last - mask_.first + 1);
  at::Tensor conditional = logits.narrow(0, 0, rows_);
  if (is_used_.defined()) {
    const double penalty = job_.repetition_penalty;
    const at::Tensor less = at::where(conditional < 0, conditional * penalty, conditional / penalty);
    conditional = at::where(is_used_, less, conditional);
  }
  at::Tensor scores = mask_.columns(conditional, mask_.first);
  if (is_guided_) {
    scores = guide(scores, mask_.columns(logits.narrow(0, rows_, rows_), mask_.first), job_.cfg_scale);
  }
  return mask_.block(scores);
}

void RunAhead::step() {
  const at::Tensor scores = scores_of(model_.step(ids_, positions_, cache_));
  const at::Tensor columns = job_.temperature < kMinTemperature
                                 ? most_likely_columns(scores)
                                 : draw_columns(candidate_weights(scores, job_.temperature, job_.top_k, job_.min_p),
                                                job_.top_p, uniforms_.index_select(1, count_).squeeze(1));
  // For a row with non-finite logits, the host reads -1. The row continues with the first id of the mask.
  const at::Tensor column = columns.clamp_min(0);
  const at::Tensor ids = mask_.id_tensor.defined() ? mask_.id_tensor.index_select(0, column) : column + mask_.first;
  if (is_used_.defined()) is_used_.scatter_(1, (ids - mask_.first).unsqueeze(1), true);
  chosen_.copy_(at::where(columns < 0, columns, ids));
  ids_.copy_(doubled(ids, is_guided_));
  positions_.add_(1).clamp_max_(cache_.max_tokens() - 1);
  count_.add_(1);
}

void RunAhead::start_step() {
  if (graph_) {
    graph_->replay();
  } else {
    step();
  }
  host_ids_.select(0, started_).copy_(chosen_, /*non_blocking=*/true);
  if (!copied_.empty()) {
    const c10::impl::VirtualGuardImpl guard(chosen_.device().type());
    copied_[static_cast<size_t>(started_ % (kQueuedSteps + 1))].record(guard.getStream(chosen_.device()));
  }
  // The first step has initialised kernels and workspaces, so later steps can be captured.
  if (started_++ == 0 && steps_ >= kMinGraphSteps) graph_ = LaunchGraph::capture(chosen_.device(), [this] { step(); });
}

std::vector<int64_t> RunAhead::next() {
  const at::AutoDispatchBelowADInplaceOrView inference;
  const c10::DeviceGuard guard(chosen_.device());
  while (started_ < std::min(steps_, read_ + kQueuedSteps + 1)) start_step();
  while (!copied_.empty() && !copied_[static_cast<size_t>(read_ % (kQueuedSteps + 1))].query()) {
    std::this_thread::sleep_for(kPoll);
  }
  const auto* const first = host_ids_.const_data_ptr<int64_t>() + read_++ * rows_;
  return {first, first + rows_};
}

}  // namespace carillon
