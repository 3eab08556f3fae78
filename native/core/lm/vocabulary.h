#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/lm/pattern.h"

namespace carillon {

/// Token table of the tokenizer for constrained decoding. Ordinary tokens have bytes; special tokens and audio codes
/// have none, so no pattern allows them. Immutable.
class Vocabulary {
 public:
  /// A node of the byte trie over the ordinary tokens. Nodes are in depth-first order. The tokens of node i are
  /// sorted_ids[nodes[i].first_token .. nodes[i + 1].first_token), so the last node is a sentinel.
  struct Node {
    uint32_t subtree;      // nodes of the subtree, including this one
    uint32_t first_token;  // index into sorted_ids()
    uint16_t depth;        // bytes from the root, at least 1
    uint8_t byte;
  };

  /// `bytes`: concatenated bytes of all tokens. `offsets`: where each token starts in `bytes`, and the total size.
  /// `end_ids`: tokens that end a row; text and codes segments allow only the first of these tokens. The ids of the
  /// `code_count` audio codes begin at `first_code`. Throws kBadArgument.
  Vocabulary(std::vector<uint8_t> bytes, std::vector<int32_t> offsets, std::vector<int32_t> end_ids, int32_t first_code,
             int32_t code_count);

  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  /// Bytes of a token; empty for special tokens and audio codes.
  std::string_view bytes(int32_t id) const;
  bool is_end(int32_t id) const;
  int32_t end_id() const { return end_ids_.front(); }
  int32_t first_code() const { return first_code_; }
  int32_t code_count() const { return code_count_; }

  /// The trie; the last node is the sentinel.
  std::span<const Node> nodes() const { return nodes_; }
  /// Ids of the ordinary tokens, sorted by their bytes.
  std::span<const int32_t> sorted_ids() const { return sorted_ids_; }
  size_t longest_token() const { return longest_token_; }

  /// Splits `text` greedily into the longest tokens. Throws kBadArgument if no token fits.
  std::vector<int32_t> spell(std::string_view text) const;

 private:
  void build_trie();

  std::vector<uint8_t> bytes_;
  std::vector<int32_t> offsets_;
  std::vector<int32_t> end_ids_;
  int32_t first_code_;
  int32_t code_count_;
  std::vector<Node> nodes_;
  std::vector<int32_t> sorted_ids_;
  size_t longest_token_ = 0;
};

/// Token ids that a row may take next, all within first .. last.
struct TokenMask {
  int64_t count = 0;
  int64_t first = 0, last = -1;
  /// The allowed ids in ascending order, [count] int64: `ids` on the host, `id_tensor` on the model's device. Both are
  /// empty if every id in first .. last is allowed, or if more than 4096 ids are allowed.
  std::vector<int64_t> ids;
  at::Tensor id_tensor;
  /// True for disallowed ids: bool [last - first + 1] on the model's device. Defined only if more than 4096 ids are
  /// allowed and the ids have gaps.
  at::Tensor blocked;

  /// Selects the mask's K columns from logits [n, C]. Returns [n, K]. Column 0 of `logits` is token `window_first`.
  at::Tensor columns(const at::Tensor& logits, int64_t window_first) const;
  /// Returns `scores` [n, K], which has the columns of columns(), with minus infinity for disallowed tokens.
  at::Tensor block(const at::Tensor& scores) const;
  /// Token id of a column in the result of columns().
  int64_t id(int64_t column) const { return ids.empty() ? first + column : ids[column]; }
};

/// A pattern with the cached masks of its states.
class PatternMasks {
 public:
  PatternMasks(const std::string& text, const Vocabulary& vocabulary, at::Device device)
      : pattern_(text), vocabulary_(vocabulary), device_(device) {}

  Pattern& pattern() { return pattern_; }
  /// Tokens that may follow in `state`: the ordinary tokens that leave a complete string reachable.
  const TokenMask& mask(int32_t state);

 private:
  std::vector<int64_t> allowed_ids(int32_t state);

  Pattern pattern_;
  const Vocabulary& vocabulary_;
  at::Device device_;
  std::unordered_map<int32_t, std::unique_ptr<TokenMask>> masks_;
};

/// Cache of all masks of one model, kept across requests. Used only on the language model's thread. The vocabulary must
/// outlive it.
class MaskCache {
 public:
  MaskCache(const Vocabulary& vocabulary, at::Device device);

  /// Throws kBadArgument for a pattern with a syntax error.
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
