#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/lm/decoder.h"
#include "core/lm/language_job.h"
#include "core/lm/vocabulary.h"
#include "core/runtime/control.h"

namespace carillon {

struct LanguageResult {
  std::vector<std::vector<int32_t>> token_ids;  // per row, with forced ids, without the end token
  std::vector<FinishReason> finished;           // per row
};

/// Runs jobs in one batch: one row per seed of each job. A step reads each weight once for all rows. The jobs may
/// differ in prompts, program, seeds and max_new_tokens; they share stage and sampling options.
///
/// On the CPU a row does not depend on the other rows, bit for bit: products of up to 16 rows sum every row in the same
/// order, prompts and forced runs are fed alone, and each row's logits cover the ids that it needs alone. On a GPU the
/// kernels depend on the number of rows, so another batch size may round differently and change a plan.
///
/// `max_context_tokens`: positions of a row, prompt and new tokens. Reports kPrefill, then the stage for each token of
/// the longest row; the total is known if every program has a fixed length. Throws kBadArgument for a job that cannot
/// run (check_job), kOutOfMemory if the cache does not fit (check_cache), kCancelled, kNotFinite.
std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                     const Control& control);
/// Runs one job.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// The same with any decoder, which has one row per seed, followed by as many unconditional rows if cfg_scale is above
/// 1. Jobs must have passed check_job.
std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                     std::span<const LanguageJob> jobs, const Control& control);
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

/// Throws kOutOfMemory unless `rows` cache rows of `row_bytes` fit into `free_bytes`. The message contains the number
/// of songs that would fit. `rows_per_song` is 2 with guidance.
void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes);

}  // namespace carillon
