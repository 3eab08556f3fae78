#pragma once
// Plain pointers only, see tile.h.
#include <cstdint>

namespace carillon::kernels {

/// One key head's keys and values: rows of `dim` bfloat16, `stride` elements apart.
struct AttendRows {
  const uint16_t* data;
  int64_t stride;
};

#if defined(CARILLON_AVX512)
/// out [dim] = softmax(query k^T scale) v over `length` keys, for one query. dim is a multiple of 32;
/// `scores` holds `length` floats of scratch.
void attend_avx512(const uint16_t* query, const AttendRows& keys, const AttendRows& values, int64_t length, int64_t dim,
                   float scale, float* scores, uint16_t* out);
#endif

}  // namespace carillon::kernels
