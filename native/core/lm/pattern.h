#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace carillon {

/// A nondeterministic finite automaton over bytes. The accepting node is reachable from every node.
struct ByteNfa {
  enum class Kind : uint8_t { kBytes, kSplit, kAccept };
  struct Node {
    Kind kind;
    uint8_t low, high;  // for kBytes: accepts one byte in low .. high
    int32_t next;       // for kBytes and kSplit
    int32_t other;      // for kSplit
  };
  std::vector<Node> nodes;
  int32_t start = 0;
};

/// Compiles a pattern (syntax: README.md) by Thompson's construction.
/// Throws kBadArgument with the error and its byte position in `pattern`.
ByteNfa parse_pattern(std::string_view pattern);

/// Lazily built deterministic finite automaton of a regular expression over bytes. A complete string is reachable from
/// every state except kDead. Not thread-safe.
class Pattern {
 public:
  static constexpr int32_t kDead = -1;

  /// Compiles a pattern. README.md describes the syntax. Throws kBadArgument with a syntax error and its position.
  explicit Pattern(std::string_view text);

  int32_t start() const { return start_; }

  /// State after one more byte. Throws kBadArgument if the pattern has too many states.
  int32_t step(int32_t state, uint8_t byte) {
    const int32_t known = transitions_[static_cast<size_t>(state) * class_count_ + byte_class_[byte]];
    return known != kUnknown ? known : build_step(state, byte);
  }
  /// Returns the state that is reached from `state` by reading all of `bytes`.
  int32_t walk(int32_t state, std::string_view bytes);

  /// Whether the bytes read so far are a complete string.
  bool accepting(int32_t state) const { return states_[state].to_accept == 0; }

  /// Returns the shortest bytes that complete the string from `state`. Of several, returns the lexicographically first.
  std::string shortest_completion(int32_t state);

 private:
  static constexpr int32_t kUnknown = -2;

  struct State {
    std::vector<int32_t> nodes;  // byte-reading and accepting nodes, ascending
    int32_t to_accept;           // number of bytes of the shortest completion
  };

  void classify_bytes();
  void measure_distances();
  int32_t build_step(int32_t state, uint8_t byte);
  int32_t intern(const std::vector<int32_t>& entries);

  ByteNfa nfa_;
  std::vector<int32_t> to_accept_;  // per node: number of bytes to the accepting node
  std::array<uint8_t, 256> byte_class_{};
  size_t class_count_ = 0;
  std::vector<State> states_;
  std::vector<int32_t> transitions_;  // [state][byte class]
  std::map<std::vector<int32_t>, int32_t> state_of_;
  int32_t start_ = 0;
};

}  // namespace carillon
