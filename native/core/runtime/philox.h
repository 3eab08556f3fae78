#pragma once
#include <array>
#include <cstdint>

namespace carillon {

/// Computes four random words from a counter and a key with Philox4x32-10 (Salmon et al., "Parallel random numbers: as
/// easy as 1, 2, 3", 2011).
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ low, static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ high, static_cast<uint32_t>(first)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

/// The words of a 64-bit number, low word first.
inline std::array<uint32_t, 2> words_of(uint64_t number) {
  return {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
}

}  // namespace carillon
