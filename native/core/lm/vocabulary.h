#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace carillon {

/// What constrained decoding knows of the tokenizer. Ordinary tokens have bytes; special tokens and
/// audio codes have none. Immutable.
class Vocabulary {
 public:
  /// A node of the byte trie over the ordinary tokens. Nodes stand in depth-first order, so a
  /// subtree is skipped by adding `subtree`, and the tokens of node i are
  /// sorted_ids[nodes[i].first_token .. nodes[i + 1].first_token) (a sentinel ends the list).
  struct Node {
    uint32_t subtree;      // nodes of the subtree, this one included
    uint32_t first_token;  // index into sorted_ids()
    uint16_t depth;        // bytes from the root to here, at least 1
    uint8_t byte;
  };

  /// bytes: of every token, end to end; offsets: size + 1 ascending positions in it.
  /// end_ids: any of them ends a row, the first is the one constrained text may produce.
  /// Audio codes are the ids first_code .. first_code + code_count - 1. Throws kBadArgument.
  Vocabulary(std::vector<uint8_t> bytes, std::vector<int32_t> offsets, std::vector<int32_t> end_ids, int32_t first_code,
             int32_t code_count);

  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  /// The bytes of a token; empty for special tokens and audio codes.
  std::string_view bytes(int32_t id) const;
  bool is_end(int32_t id) const;
  int32_t end_id() const { return end_ids_.front(); }
  int32_t first_code() const { return first_code_; }
  int32_t code_count() const { return code_count_; }

  /// The trie; the last node is the sentinel.
  std::span<const Node> nodes() const { return nodes_; }
  /// Ids of the ordinary tokens in the order of their bytes.
  std::span<const int32_t> sorted_ids() const { return sorted_ids_; }
  size_t longest_token() const { return longest_token_; }

  /// Splits `text` into the longest tokens from the left. Throws kBadArgument when no token fits.
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

}  // namespace carillon
