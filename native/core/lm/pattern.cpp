#include "core/lm/pattern.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "core/runtime/error.h"

namespace carillon {

namespace {
constexpr size_t kMaxStates = 20'000;
}

Pattern::Pattern(std::string_view text) : nfa_(parse_pattern(text)) {
  classify_bytes();
  measure_distances();
  start_ = intern({nfa_.start});
}

/// Puts bytes that all nodes treat alike into one class, which keeps the transition table small.
void Pattern::classify_bytes() {
  std::array<bool, 257> boundary{};
  for (const auto& node : nfa_.nodes) {
    if (node.kind != ByteNfa::Kind::kBytes) continue;
    boundary[node.low] = true;
    boundary[node.high + 1] = true;
  }
  uint8_t current = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && boundary[byte]) ++current;
    byte_class_[byte] = current;
  }
  class_count_ = size_t{current} + 1;
}

/// Computes `to_accept_`: the number of bytes from each node to the accepting node. Searches backwards, breadth first.
void Pattern::measure_distances() {
  std::vector<std::vector<int32_t>> sources(nfa_.nodes.size());
  std::deque<int32_t> queue;
  to_accept_.assign(nfa_.nodes.size(), std::numeric_limits<int32_t>::max());
  for (size_t i = 0; i < nfa_.nodes.size(); ++i) {
    const auto& node = nfa_.nodes[i];
    const auto index = static_cast<int32_t>(i);
    if (node.next >= 0) sources[node.next].push_back(index);
    if (node.other >= 0) sources[node.other].push_back(index);
    if (node.kind == ByteNfa::Kind::kAccept) {
      to_accept_[i] = 0;
      queue.push_back(index);
    }
  }
  while (!queue.empty()) {
    const int32_t node = queue.front();
    queue.pop_front();
    for (const int32_t source : sources[node]) {
      const bool reads = nfa_.nodes[source].kind == ByteNfa::Kind::kBytes;
      const int32_t distance = to_accept_[node] + (reads ? 1 : 0);
      if (distance >= to_accept_[source]) continue;
      to_accept_[source] = distance;
      if (reads) {
        queue.push_back(source);
      } else {
        queue.push_front(source);
      }
    }
  }
}

/// Returns the state for the nodes that are reachable from `entries` without reading a byte (epsilon closure). Adds the
/// state if it is new.
int32_t Pattern::intern(const std::vector<int32_t>& entries) {
  std::vector<bool> seen(nfa_.nodes.size());
  std::vector<int32_t> open(entries), nodes;
  int32_t distance = std::numeric_limits<int32_t>::max();
  while (!open.empty()) {
    const int32_t index = open.back();
    open.pop_back();
    if (seen[index]) continue;
    seen[index] = true;
    const auto& node = nfa_.nodes[index];
    if (node.kind == ByteNfa::Kind::kSplit) {
      open.push_back(node.next);
      open.push_back(node.other);
    } else {
      nodes.push_back(index);
      distance = std::min(distance, to_accept_[index]);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  const auto [entry, is_new] = state_of_.try_emplace(nodes, static_cast<int32_t>(states_.size()));
  if (is_new) {
    if (states_.size() >= kMaxStates) fail(ErrorCode::kBadArgument, "pattern: too many states, use a simpler one");
    states_.push_back({std::move(nodes), distance});
    transitions_.resize(states_.size() * class_count_, kUnknown);
  }
  return entry->second;
}

int32_t Pattern::build_step(int32_t state, uint8_t byte) {
  std::vector<int32_t> entries;
  for (const int32_t index : states_[state].nodes) {
    const auto& node = nfa_.nodes[index];
    if (node.kind == ByteNfa::Kind::kBytes && node.low <= byte && byte <= node.high) entries.push_back(node.next);
  }
  const int32_t next = entries.empty() ? kDead : intern(entries);
  transitions_[static_cast<size_t>(state) * class_count_ + byte_class_[byte]] = next;
  return next;
}

int32_t Pattern::walk(int32_t state, std::string_view bytes) {
  for (const char byte : bytes) {
    if (state == kDead) break;
    state = step(state, static_cast<uint8_t>(byte));
  }
  return state;
}

std::string Pattern::shortest_completion(int32_t state) {
  std::string bytes;
  while (!accepting(state)) {
    for (int byte = 0; byte < 256; ++byte) {
      const int32_t next = step(state, static_cast<uint8_t>(byte));
      if (next == kDead || states_[next].to_accept >= states_[state].to_accept) continue;
      bytes.push_back(static_cast<char>(byte));
      state = next;
      break;
    }
  }
  return bytes;
}

}  // namespace carillon
