#pragma once
#include <cstdint>
#include <memory>

#include "core/lm/language_request.h"
#include "core/lm/vocabulary.h"
#include "core/qwen3/causal_lm.h"

namespace carillon {

/// Runs `first` in a batch. Between tokens, requests of `queue` with the same stage and sampling options join the
/// batch, and finished requests leave it. Prompts, program, seeds and max_new_tokens may differ.
///
/// On the CPU, a row's results are the same in any batch of up to 16 rows, bit for bit. On a GPU, kernels depend on the
/// number of rows: another batch size may round differently and change the chosen tokens.
///
/// `max_context_tokens` limits the tokens of a row: prompt plus new tokens. `max_songs` limits the jobs in the batch;
/// only `first` may exceed it. Fewer jobs are allowed if a batch of `max_songs` would take more than a quarter of the
/// free memory.
///
/// Each request gets progress reports for its own rows: kPrefill, then the job's stage for each token of its longest
/// row. The total is known if every program has a fixed length. A request fails with kBadArgument (check_job),
/// kOutOfMemory (check_cache), kCancelled or kNotFinite.
void generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
              std::shared_ptr<LanguageRequest> first, RequestQueue& queue, int64_t max_context_tokens,
              int64_t max_songs);

/// Throws kOutOfMemory unless `rows` cache rows of `row_bytes` fit into `free_bytes`. The message contains the number
/// of songs that would fit. `rows_per_song` is 2 with guidance.
void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes);

}  // namespace carillon
