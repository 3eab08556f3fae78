#pragma once
// A vocabulary for the embedded language model: bytes, audio codes and an end token.
#include <numeric>
#include <utility>
#include <vector>

#include "core/lm/vocabulary.h"

namespace carillon::test {

constexpr int32_t kEnd = 1, kFirstCode = 2048, kCodeCount = 4096;

/// The first 256 ids are the bytes.
inline Vocabulary byte_vocabulary(int64_t size) {
  std::vector<uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  std::vector<int32_t> offsets(static_cast<size_t>(size) + 1, 256);
  std::iota(offsets.begin(), offsets.begin() + 256, 0);
  return Vocabulary(std::move(bytes), std::move(offsets), {kEnd}, kFirstCode, kCodeCount);
}

}  // namespace carillon::test
