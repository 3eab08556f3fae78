#include "core/lm/vocabulary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

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
  require(offsets_.size() > 1, "has no tokens");
  require(offsets_.front() == 0 && offsets_.back() == static_cast<int64_t>(bytes_.size()) &&
              std::is_sorted(offsets_.begin(), offsets_.end()),
          "offsets must ascend from 0 to the number of bytes");
  require(!end_ids_.empty(), "has no end token");
  for (const int32_t id : end_ids_) require(id >= 0 && id < size(), "an end token is out of range");
  require(code_count_ >= 0 && first_code_ >= 0 && int64_t{first_code_} + code_count_ <= size(),
          "audio codes are out of range");
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

  std::vector<uint32_t> path;  // nodes of the previous token, from the root down
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].subtree = static_cast<uint32_t>(nodes_.size()) - path.back();
    }
  };
  std::string_view previous;
  for (uint32_t index = 0; index < sorted_ids_.size(); ++index) {
    const auto text = bytes(sorted_ids_[index]);
    if (text.size() > std::numeric_limits<uint16_t>::max()) {
      fail(ErrorCode::kBadArgument, "vocabulary: a token is longer than 65535 bytes");
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

namespace {

// A mask of at most this many ids is stored as a list, because gathering the listed columns is then cheaper than
// masking the whole range of ids.
constexpr size_t kMaxListed = 4096;
constexpr size_t kMaxPatterns = 64;

/// `ids` are distinct, in any order.
TokenMask make_mask(std::vector<int64_t> ids, at::Device device) {
  TokenMask mask;
  mask.count = static_cast<int64_t>(ids.size());
  if (ids.empty()) return mask;
  const auto [first, last] = std::minmax_element(ids.begin(), ids.end());
  mask.first = *first;
  mask.last = *last;
  const int64_t width = mask.last - mask.first + 1;
  if (width == mask.count) return mask;
  if (ids.size() <= kMaxListed) {
    std::sort(ids.begin(), ids.end());
    mask.id_tensor = at::tensor(ids, at::kLong).to(device);
    mask.ids = std::move(ids);
    return mask;
  }
  auto blocked = at::ones({width}, at::kBool);
  bool* const flags = blocked.mutable_data_ptr<bool>();
  for (const int64_t id : ids) flags[id - mask.first] = false;
  mask.blocked = blocked.to(device);
  return mask;
}

std::vector<int64_t> id_range(int64_t first, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<int64_t> with(std::vector<int64_t> ids, int64_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  return ids;
}

}  // namespace

at::Tensor TokenMask::columns(const at::Tensor& logits, int64_t window_first) const {
  if (id_tensor.defined()) return logits.index_select(1, id_tensor - window_first);
  return logits.narrow(1, first - window_first, last - first + 1);
}

at::Tensor TokenMask::block(const at::Tensor& scores) const {
  return blocked.defined() ? scores.masked_fill(blocked, -std::numeric_limits<double>::infinity()) : scores;
}

const TokenMask& PatternMasks::mask(int32_t state) {
  auto& mask = masks_[state];
  if (!mask) mask = std::make_unique<TokenMask>(make_mask(allowed_ids(state), device_));
  return *mask;
}

/// Walks the trie of tokens and the automaton together, depth-first. Skips subtrees in which the automaton can no
/// longer match.
std::vector<int64_t> PatternMasks::allowed_ids(int32_t state) {
  const auto nodes = vocabulary_.nodes();
  const auto sorted = vocabulary_.sorted_ids();
  std::vector<int32_t> state_at(vocabulary_.longest_token() + 1);
  state_at[0] = state;
  std::vector<int64_t> ids;
  for (size_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    const int32_t next = pattern_.step(state_at[node.depth - 1], node.byte);
    if (next == Pattern::kDead) {
      i += node.subtree;
      continue;
    }
    state_at[node.depth] = next;
    ++i;
    for (uint32_t token = node.first_token; token < nodes[i].first_token; ++token) ids.push_back(sorted[token]);
  }
  return ids;
}

MaskCache::MaskCache(const Vocabulary& vocabulary, at::Device device) : vocabulary_(vocabulary), device_(device) {
  auto codes = id_range(vocabulary.first_code(), vocabulary.code_count());
  std::vector<int64_t> text(vocabulary.sorted_ids().begin(), vocabulary.sorted_ids().end());
  codes_or_end_ = make_mask(with(codes, vocabulary.end_id()), device);
  codes_ = make_mask(std::move(codes), device);
  text_ = make_mask(with(std::move(text), vocabulary.end_id()), device);
  everything_ = make_mask(id_range(0, vocabulary.size()), device);
}

std::shared_ptr<PatternMasks> MaskCache::pattern(const std::string& text) {
  auto known = patterns_.find(text);
  if (known != patterns_.end()) return known->second;
  // Limits the memory of callers that use many patterns. A service uses only a few.
  if (patterns_.size() >= kMaxPatterns) patterns_.clear();
  auto masks = std::make_shared<PatternMasks>(text, vocabulary_, device_);
  patterns_.emplace(text, masks);
  return masks;
}

}  // namespace carillon
