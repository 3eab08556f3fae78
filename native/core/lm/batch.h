#pragma once
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <vector>

#include "core/lm/choose.h"
#include "core/lm/decoder.h"
#include "core/lm/language_request.h"
#include "core/lm/vocabulary.h"

namespace carillon {

/// Sizes of a batch. The decoder has `songs` conditional rows. With guidance, as many unconditional rows follow.
struct BatchLimits {
  int64_t songs;
  int64_t row_tokens;      // maximum tokens of a row of the decoder
  int64_t context_tokens;  // context length of the model
};

/// Requests that are decoded together: a step reads each weight once for all their rows. Requests join and leave
/// between tokens; if one is cancelled or fails, the others continue. The arguments must outlive the batch.
class Batch {
 public:
  /// `options` is a job. Its stage and sampling options apply to all requests.
  Batch(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& options,
        BatchLimits limits, RequestQueue& queue);

  /// Runs `first`, which must have passed check_jobs, and requests of the queue that can join. Returns when all of them
  /// are finished.
  void run(std::shared_ptr<LanguageRequest> first);

 private:
  struct Member {
    std::shared_ptr<LanguageRequest> request;
    std::list<BatchRow> rows;  // one per job
  };

  bool can_join(const LanguageRequest& request) const;
  std::shared_ptr<LanguageRequest> next_request();
  void admit_waiting();
  void admit(std::shared_ptr<LanguageRequest> request);
  void add_rows(Member& member);
  void drop(Member& member, const std::exception_ptr& error);
  void remove(Member& member);
  Member& member_of(const BatchRow& row);

  HiddenStates prefill(Member& member);
  at::Tensor prefill(const Control& control, const std::vector<int32_t>& prompt, int64_t cache_row, int64_t done,
                     int64_t total);
  HiddenStates feed();
  HiddenStates feed(const std::vector<BatchRow*>& rows);
  bool run_ahead();
  void append_ids(const std::vector<int64_t>& ids, KvCache& cache);
  HiddenStates drop_not_finite(const HiddenStates& hidden);
  void resolve_finished();
  static std::vector<LanguageResult> results_of(const Member& member);
  static void report(const Member& member);

  Decoder& decoder_;
  const Vocabulary& vocabulary_;
  MaskCache& masks_;
  const LanguageJob options_;
  const BatchLimits limits_;
  RequestQueue& queue_;
  const bool guided_;
  TokenChooser chooser_;
  std::list<Member> members_;
  std::vector<BatchRow*> rows_;               // indexed by conditional cache row; nullptr if free
  std::shared_ptr<LanguageRequest> joining_;  // taken from the queue by run_ahead, not admitted yet
};

}  // namespace carillon
