#pragma once
#include <array>
#include <cstdint>

namespace carillon {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a block of
/// four random words that is a pure function of counter and key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A number of [0, 1) with 53 random bits: the draw for token `index` of a row with this seed in this phase.
double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index);

}  // namespace carillon
