#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace carillon {

/// A nondeterministic automaton over bytes. Every node reaches the accepting one.
struct ByteNfa {
  enum class Kind : uint8_t { kBytes, kSplit, kAccept };
  struct Node {
    Kind kind;
    uint8_t low, high;  // kBytes: one byte of low .. high
    int32_t next;       // kBytes, kSplit
    int32_t other;      // kSplit
  };
  std::vector<Node> nodes;
  int32_t start = 0;
};

/// Compiles a pattern (syntax: README.md) by Thompson's construction.
/// Throws kBadArgument naming the fault and its byte position in `pattern`.
ByteNfa parse_pattern(std::string_view pattern);

}  // namespace carillon
