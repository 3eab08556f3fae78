#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/lm/batch.h"
#include "core/lm/decoder.h"
#include "core/lm/language_job.h"
#include "core/lm/language_request.h"
#include "core/lm/vocabulary.h"
#include "core/runtime/control.h"

namespace carillon {

/// Runs `first` and, in the same batch, requests of `queue` that have the same stage and sampling options. They join
/// and leave between tokens. A step reads each weight once for all rows: one row per seed of each job. Jobs may differ
/// in prompts, program, seeds and max_new_tokens.
///
/// On the CPU the results of a row do not depend on the other rows, bit for bit: products of up to 16 rows sum every
/// row in the same order, prompts and runs of forced ids are fed alone, and each row gets the logits of only the ids
/// that it needs. On a GPU, kernels depend on the number of rows, so another batch size may round differently and
/// change the chosen tokens.
///
/// `max_context_tokens` limits a row: prompt plus new tokens. `max_songs` limits the seeds that are decoded at once,
/// unless `first` alone has more. The limit is lower if a batch of that size would take more than a quarter of the free
/// memory.
///
/// Each request gets progress reports for its own rows: kPrefill, then the job's stage for each token of its longest
/// row. The total is known if every program has a fixed length. A request is rejected with kBadArgument if it cannot
/// run (check_job), with kOutOfMemory if the cache does not fit (check_cache), or with kCancelled or kNotFinite.
void generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
              std::shared_ptr<LanguageRequest> first, RequestQueue& queue, int64_t max_context_tokens,
              int64_t max_songs);

/// Runs jobs in a batch of their own. Throws the error of a rejected request.
std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                     const Control& control);
/// Runs one job.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// Runs jobs, validated by check_jobs, on any decoder. The decoder needs one row per seed, and as many unconditional
/// rows after them if cfg_scale is above 1.
std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, const Control& control);
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

/// Throws kOutOfMemory unless `rows` cache rows of `row_bytes` fit into `free_bytes`. The message contains the number
/// of songs that would fit. `rows_per_song` is 2 with guidance.
void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes);

}  // namespace carillon
