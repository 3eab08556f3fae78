#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lm/pattern.h"
#include "core/lm/vocabulary.h"

namespace carillon {

/// The token ids a row may take next. All lie in first .. last.
struct TokenMask {
  int64_t count = 0;
  int64_t first = 0, last = -1;
  /// The ids themselves, ascending: [count] int64, on the host and on the model's device. Only when they are few.
  std::vector<int64_t> ids;
  at::Tensor id_tensor;
  /// bool [last - first + 1] on the model's device, true where an id is not allowed. Only when the
  /// ids are many and have gaps; with neither form every id of first .. last is allowed.
  at::Tensor blocked;

  /// The allowed columns of logits [n, C] whose column 0 is id `window_first`: [n, K].
  at::Tensor columns(const at::Tensor& logits, int64_t window_first) const;
  /// Puts minus infinity where [n, K] scores of columns() belong to ids that are not allowed.
  at::Tensor block(const at::Tensor& scores) const;
  /// The id of column `column` of columns().
  int64_t id(int64_t column) const { return ids.empty() ? first + column : ids[column]; }
};

/// A pattern together with the masks of the states met so far.
class PatternMasks {
 public:
  PatternMasks(const std::string& text, const Vocabulary& vocabulary, at::Device device)
      : pattern_(text), vocabulary_(vocabulary), device_(device) {}

  Pattern& pattern() { return pattern_; }
  /// The ordinary tokens after which a complete string can still be reached.
  const TokenMask& mask(int32_t state);

 private:
  std::vector<int64_t> allowed_ids(int32_t state);

  Pattern pattern_;
  const Vocabulary& vocabulary_;
  at::Device device_;
  std::unordered_map<int32_t, std::unique_ptr<TokenMask>> masks_;
};

/// Every mask of one model, kept from request to request. Owned by the model and used only on the
/// language model's lane; the vocabulary must outlive it.
class MaskCache {
 public:
  MaskCache(const Vocabulary& vocabulary, at::Device device);

  /// Throws kBadArgument for a pattern that cannot be read.
  std::shared_ptr<PatternMasks> pattern(const std::string& text);
  const TokenMask& codes() const { return codes_; }
  const TokenMask& codes_or_end() const { return codes_or_end_; }
  const TokenMask& text() const { return text_; }
  const TokenMask& everything() const { return everything_; }

 private:
  const Vocabulary& vocabulary_;
  at::Device device_;
  std::unordered_map<std::string, std::shared_ptr<PatternMasks>> patterns_;
  TokenMask codes_, codes_or_end_, text_, everything_;
};

}  // namespace carillon
