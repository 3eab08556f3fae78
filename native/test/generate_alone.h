#pragma once
// Runs language jobs in a batch of their own.
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/lm/batch.h"
#include "core/lm/decoder.h"
#include "core/lm/generate.h"

namespace carillon {

class NoQueue : public RequestQueue {
 public:
  std::shared_ptr<LanguageRequest> take(const std::function<bool(const LanguageRequest&)>&) override { return nullptr; }
};

/// Makes a request of `jobs`, passes it to `run`, and returns its results or throws its error.
inline std::vector<LanguageResult> run_alone(std::span<const LanguageJob> jobs, const Control& control,
                                             const std::function<void(std::shared_ptr<LanguageRequest>)>& run) {
  std::vector<LanguageResult> results;
  std::exception_ptr error;
  run(std::make_shared<LanguageRequest>(
      LanguageRequest{{jobs.begin(), jobs.end()},
                      control,
                      [&](std::vector<LanguageResult> own) { results = std::move(own); },
                      [&](const std::exception_ptr& own) { error = own; }}));
  if (error) std::rethrow_exception(error);
  return results;
}

/// Runs jobs in a batch of their own. Throws the error of a request that fails.
inline std::vector<LanguageResult> generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                                            std::span<const LanguageJob> jobs, int64_t max_context_tokens,
                                            const Control& control) {
  return run_alone(jobs, control, [&](std::shared_ptr<LanguageRequest> request) {
    NoQueue none;
    generate(model, vocabulary, masks, std::move(request), none, max_context_tokens, /*max_songs=*/1);
  });
}

/// Runs jobs on any decoder. check_jobs must have accepted the jobs. The decoder needs one row per job. If cfg_scale is
/// above 1, it also needs one unconditional row per job, after all the others.
inline std::vector<LanguageResult> generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks,
                                            std::span<const LanguageJob> jobs, const Control& control) {
  return run_alone(jobs, control, [&](std::shared_ptr<LanguageRequest> request) {
    NoQueue none;
    const BatchLimits limits{std::ssize(jobs), longest_row(jobs), std::numeric_limits<int64_t>::max()};
    Batch(decoder, vocabulary, masks, jobs.front(), limits, none).run(std::move(request));
  });
}

/// Jobs that differ only in their seeds.
struct SeededJob : LanguageJob {
  std::vector<uint64_t> seeds = {1};

  std::vector<LanguageJob> jobs() const {
    std::vector<LanguageJob> all(seeds.size(), *this);
    for (size_t i = 0; i < all.size(); ++i) all[i].seed = seeds[i];
    return all;
  }
};

/// Results of a SeededJob: ids and stop reason of each seed.
struct SeededResult {
  std::vector<std::vector<int32_t>> token_ids;
  std::vector<FinishReason> finished;

  explicit SeededResult(const std::vector<LanguageResult>& results) {
    for (const auto& [ids, reason] : results) token_ids.push_back(ids), finished.push_back(reason);
  }
};

/// Runs the jobs of all seeds in one batch, as generate() does.
inline SeededResult generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
                             const SeededJob& job, int64_t max_context_tokens, const Control& control) {
  return SeededResult(generate(model, vocabulary, masks, job.jobs(), max_context_tokens, control));
}

inline SeededResult generate(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const SeededJob& job,
                             const Control& control) {
  return SeededResult(generate(decoder, vocabulary, masks, job.jobs(), control));
}

}  // namespace carillon
