#include "core/lm/philox.h"

#include <ATen/ATen.h>

namespace carillon {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t{0xD2511F53} * counter[0];
    const uint64_t right = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(right),
               static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index) {
  const auto words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), phase, 0},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[0] >> 5} << 26) | (words[1] >> 6);
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace carillon
