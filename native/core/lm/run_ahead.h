#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/lm/language_job.h"
#include "core/lm/vocabulary.h"
#include "core/qwen3/causal_lm.h"
#include "core/runtime/cuda_graph.h"

namespace carillon {

/// State of a row. `unfed_id` is the id to feed next. `ids` has all new ids so far, including `unfed_id`.
struct RunAheadRow {
  int32_t unfed_id;
  uint64_t seed;
  std::span<const int32_t> ids;
};

/// Chooses tokens on the device while all rows have the same mask. A step needs no arguments from the host, so a graph
/// can capture it. The host reads the ids some steps later, which does not stall the device. The host would choose the
/// same ids, because random numbers depend only on seed and position.
class RunAhead {
 public:
  /// The cache has a row for each of `rows`, followed by as many unconditional rows if job.cfg_scale is above 1.
  /// Chooses at most `steps` tokens. The arguments must outlive this object.
  RunAhead(const CausalLm& model, KvCache& cache, const LanguageJob& job, const TokenMask& mask,
           const std::vector<RunAheadRow>& rows, int64_t steps);

  /// Returns the ids of the next step, one per row. Rows do not stop at an end token. An id is -1 if the row's logits
  /// are not finite.
  std::vector<int64_t> next();

 private:
  void step();
  void start_step();
  at::Tensor scores_of(const at::Tensor& hidden) const;

  const CausalLm& model_;
  KvCache& cache_;
  const LanguageJob& job_;
  const TokenMask& mask_;
  const int64_t rows_, steps_;
  const bool is_guided_;

  // State on the device, which each step updates in place.
  at::Tensor ids_;        // int64 [rows of the cache]: ids to feed next
  at::Tensor positions_;  // int64 [rows of the cache]: their positions
  at::Tensor chosen_;     // int64 [rows]: ids of the last step; -1 for logits that are not finite
  at::Tensor count_;      // int64 [1]: finished steps
  at::Tensor uniforms_;   // float64 [rows, steps]: random numbers
  at::Tensor is_used_;    // bool [rows, ids of the mask's range]: used ids; only with a repetition penalty

  at::Tensor host_ids_;  // int64 [steps, rows], pinned
  std::vector<c10::Event> copied_;
  std::unique_ptr<LaunchGraph> graph_;
  int64_t started_ = 0, read_ = 0;
};

}  // namespace carillon
