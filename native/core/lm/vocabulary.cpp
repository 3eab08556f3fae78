#include "core/lm/vocabulary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "core/runtime/error.h"

namespace carillon {

Vocabulary::Vocabulary(std::vector<uint8_t> bytes, std::vector<int32_t> offsets, std::vector<int32_t> end_ids,
                       int32_t first_code, int32_t code_count)
    : bytes_(std::move(bytes)),
      offsets_(std::move(offsets)),
      end_ids_(std::move(end_ids)),
      first_code_(first_code),
      code_count_(code_count) {
  const auto require = [](bool condition, const char* message) {
    if (!condition) fail(ErrorCode::kBadArgument, std::string("vocabulary: ") + message);
  };
  require(offsets_.size() > 1, "there are no tokens");
  require(offsets_.front() == 0 && offsets_.back() == static_cast<int64_t>(bytes_.size()) &&
              std::is_sorted(offsets_.begin(), offsets_.end()),
          "the offsets do not ascend from 0 to the number of bytes");
  require(!end_ids_.empty(), "there is no end token");
  for (const int32_t id : end_ids_) require(id >= 0 && id < size(), "an end token lies outside");
  require(code_count_ >= 0 && first_code_ >= 0 && int64_t{first_code_} + code_count_ <= size(),
          "the audio codes lie outside");
  build_trie();
}

std::string_view Vocabulary::bytes(int32_t id) const {
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + offsets_[id];
  return {begin, static_cast<size_t>(offsets_[id + 1] - offsets_[id])};
}

bool Vocabulary::is_end(int32_t id) const { return std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end(); }

void Vocabulary::build_trie() {
  for (int32_t id = 0; id < size(); ++id) {
    if (!bytes(id).empty()) sorted_ids_.push_back(id);
  }
  std::sort(sorted_ids_.begin(), sorted_ids_.end(), [this](int32_t a, int32_t b) {
    const auto left = bytes(a), right = bytes(b);
    return left != right ? left < right : a < b;
  });

  std::vector<uint32_t> path;  // the open nodes, from the root down
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].subtree = static_cast<uint32_t>(nodes_.size()) - path.back();
    }
  };
  std::string_view previous;
  for (uint32_t index = 0; index < sorted_ids_.size(); ++index) {
    const auto text = bytes(sorted_ids_[index]);
    if (text.size() > std::numeric_limits<uint16_t>::max()) {
      fail(ErrorCode::kBadArgument, "vocabulary: a token is too long");
    }
    longest_token_ = std::max(longest_token_, text.size());
    const auto differs = std::mismatch(previous.begin(), previous.end(), text.begin(), text.end()).first;
    const auto shared = static_cast<size_t>(differs - previous.begin());
    close_to(shared);
    for (size_t depth = shared; depth < text.size(); ++depth) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, index, static_cast<uint16_t>(depth + 1), static_cast<uint8_t>(text[depth])});
    }
    previous = text;
  }
  close_to(0);
  nodes_.push_back({1, static_cast<uint32_t>(sorted_ids_.size()), 0, 0});
}

std::vector<int32_t> Vocabulary::spell(std::string_view text) const {
  std::vector<int32_t> ids;
  while (!text.empty()) {
    int32_t longest = -1;
    size_t node = 0, depth = 0;
    while (node + 1 < nodes_.size() && nodes_[node].depth == depth + 1 && depth < text.size()) {
      if (nodes_[node].byte != static_cast<uint8_t>(text[depth])) {
        node += nodes_[node].subtree;
        continue;
      }
      if (nodes_[node].first_token < nodes_[node + 1].first_token) longest = sorted_ids_[nodes_[node].first_token];
      ++node;
      ++depth;
    }
    if (longest < 0) {
      const auto byte = static_cast<uint8_t>(text[0]);
      fail(ErrorCode::kBadArgument, "the vocabulary has no token for byte " + std::to_string(byte));
    }
    ids.push_back(longest);
    text.remove_prefix(bytes(longest).size());
  }
  return ids;
}

}  // namespace carillon
