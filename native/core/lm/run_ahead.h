#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/lm/generate.h"
#include "core/lm/vocabulary.h"
#include "core/qwen3/causal_lm.h"
#include "core/runtime/cuda_graph.h"

namespace carillon {

/// A row that goes on by itself: the id to feed next, its seed, and every new id so far, that one included.
struct AheadRow {
  int32_t unfed_id;
  uint64_t seed;
  std::span<const int32_t> ids;
};

/// Tokens that a device chooses one after another while every row has the same mask: ids, positions, random numbers and the
/// ids of the repetition penalty lie there, so that a step has no argument. It is captured as a graph where there are
/// graphs, and the host reads the ids some steps late, without stopping the device. The same ids as the host would choose.
class RunAhead {
 public:
  /// A row of the cache for each of `rows`, and as many again (unconditional) when job.cfg_scale is above 1. At most
  /// `steps` tokens are chosen. What is passed must outlive it.
  RunAhead(const CausalLm& model, KvCache& cache, const LanguageJob& job, const TokenMask& mask,
           const std::vector<AheadRow>& rows, int64_t steps);

  /// The ids of the next step, one per row; all rows go on, whatever they are. Throws kNotFinite.
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

  // On the device, written in place by each step.
  at::Tensor ids_;        // int64 [rows of the cache]: what is fed next
  at::Tensor positions_;  // int64 [rows of the cache]: where to
  at::Tensor chosen_;     // int64 [rows]: -1 where logits were not finite
  at::Tensor count_;      // int64 [1]: steps done
  at::Tensor uniforms_;   // float64 [rows, steps]
  at::Tensor is_used_;    // bool [rows, ids of the mask's range]; undefined without a repetition penalty

  at::Tensor host_ids_;  // int64 [steps, rows], pinned
  std::vector<c10::Event> copied_;
  std::unique_ptr<Graph> graph_;
  int64_t started_ = 0, read_ = 0;
};

}  // namespace carillon
