#pragma once
// Plain pointers only, see tile.h.
#include <cstdint>

namespace carillon::kernels {

/// The most rows of x that one pass over a weight serves.
inline constexpr int kGemvRows = 8;

#if defined(CARILLON_AVX512)
/// y[r, o] = sum over k of x[r, k] weight[o, k] + bias[o], for `rows` <= kGemvRows rows of x [rows, depth] and
/// `outputs` rows of weight [outputs, depth]. All bfloat16 but the bias; sums in float32. bias may be null.
void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride);
#endif

}  // namespace carillon::kernels
