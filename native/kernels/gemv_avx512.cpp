#include "kernels/gemv.h"
#include "kernels/simd_avx512.h"

namespace carillon::kernels {
namespace {

constexpr int kVector = 32;  // bfloat16 elements of a vector

/// 32 elements, of which those from `count` on are zero.
inline __m512i load_pairs(const uint16_t* p, int64_t count) {
  if (count >= kVector) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1), p);
}

/// One output of every row. The weight is read front to back as a single stream, which the memory likes best.
template <int kRows>
inline void dot(const uint16_t* x, const uint16_t* weight, int64_t depth, float bias, uint16_t* y, int64_t y_stride) {
  constexpr int64_t kPrefetchElements = 2048;
  __m512 even[kRows], odd[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = _mm512_setzero_ps();
  int64_t k = 0;
  for (; k + 2 * kVector <= depth; k += 2 * kVector) {
    _mm_prefetch(reinterpret_cast<const char*>(weight + k + kPrefetchElements), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(weight + k + kPrefetchElements + kVector), _MM_HINT_T0);
    const __m512i w0 = _mm512_loadu_si512(weight + k);
    const __m512i w1 = _mm512_loadu_si512(weight + k + kVector);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      even[r] = multiply_add(even[r], _mm512_loadu_si512(x + r * depth + k), w0);
      odd[r] = multiply_add(odd[r], _mm512_loadu_si512(x + r * depth + k + kVector), w1);
    }
  }
  for (; k < depth; k += kVector) {
    const __m512i w = load_pairs(weight + k, depth - k);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) even[r] = multiply_add(even[r], load_pairs(x + r * depth + k, depth - k), w);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const float total = _mm512_reduce_add_ps(_mm512_add_ps(even[r], odd[r])) + bias;
    store(y + r * y_stride, Mask(1), _mm512_set1_ps(total));
  }
}

template <int kRows>
void gemv(const uint16_t* x, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias, uint16_t* y,
          int64_t y_stride) {
  for (int64_t o = 0; o < outputs; ++o) {
    dot<kRows>(x, weight + o * depth, depth, bias ? bias[o] : 0.0f, y + o, y_stride);
  }
}

}  // namespace

void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride) {
  switch (rows) {
    case 1:
      return gemv<1>(x, weight, outputs, depth, bias, y, y_stride);
    case 2:
      return gemv<2>(x, weight, outputs, depth, bias, y, y_stride);
    case 3:
      return gemv<3>(x, weight, outputs, depth, bias, y, y_stride);
    case 4:
      return gemv<4>(x, weight, outputs, depth, bias, y, y_stride);
    case 5:
      return gemv<5>(x, weight, outputs, depth, bias, y, y_stride);
    case 6:
      return gemv<6>(x, weight, outputs, depth, bias, y, y_stride);
    case 7:
      return gemv<7>(x, weight, outputs, depth, bias, y, y_stride);
    default:
      return gemv<8>(x, weight, outputs, depth, bias, y, y_stride);
  }
}

}  // namespace carillon::kernels
