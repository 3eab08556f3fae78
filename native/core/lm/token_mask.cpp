#include "core/lm/token_mask.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace carillon {

namespace {

// Up to here gathering columns is cheaper than masking a whole window of them.
constexpr size_t kMaxListed = 4096;
constexpr size_t kMaxPatterns = 64;

/// `ids` are different, in any order.
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

/// Walks the trie in depth-first order with the automaton; a dead state skips the subtree.
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
  // A service uses a handful of patterns; only a caller that invents new ones meets the bound.
  if (patterns_.size() >= kMaxPatterns) patterns_.clear();
  auto masks = std::make_shared<PatternMasks>(text, vocabulary_, device_);
  patterns_.emplace(text, masks);
  return masks;
}

}  // namespace carillon
