#pragma once
#include <cstdint>

#include "core/lm/decoder.h"
#include "core/lm/language_job.h"
#include "core/lm/token_mask.h"
#include "core/qwen3/causal_lm.h"
#include "core/runtime/control.h"

namespace carillon {

/// Runs a job: one row per seed, all from the same prompt, in one batch until each row is finished.
/// `max_context_tokens`: positions of a row, prompt and new tokens together.
/// Reports kPrefill, then job.stage per token; the total is known when the program's length is.
/// Throws kBadArgument for a job that cannot run (check_job), kCancelled, kNotFinite.
LanguageResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        int64_t max_context_tokens, const Control& control);

/// The loop itself over any decoder with a row per seed, and as many again (unconditional) when
/// cfg_scale is above 1. The job has passed check_job.
LanguageResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& job,
                        const Control& control);

}  // namespace carillon
