#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "core/lm/language_job.h"
#include "core/runtime/control.h"

namespace carillon {

struct LanguageResult {
  std::vector<int32_t> token_ids;  // with forced ids, without the end token
  FinishReason finished;
};

/// The jobs of one call, with its control and its result callbacks. All jobs have the same stage and sampling options.
/// Either `resolve` or `reject` is called, exactly once.
struct LanguageRequest {
  std::vector<LanguageJob> jobs;
  Control control;
  std::function<void(std::vector<LanguageResult>)> resolve;  // one per job
  std::function<void(std::exception_ptr)> reject;
};

/// Queue of requests that wait for the model.
class RequestQueue {
 public:
  virtual ~RequestQueue() = default;
  /// Removes and returns the next request. Returns nullptr if there is none, if `fits` rejects it, or if it should wait
  /// for its own batch. Called by a running batch between tokens.
  virtual std::shared_ptr<LanguageRequest> take(const std::function<bool(const LanguageRequest&)>& fits) = 0;
};

}  // namespace carillon
