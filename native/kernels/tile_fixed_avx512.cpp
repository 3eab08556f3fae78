// Tiles of products in 16-bit integers, whose error is a sixteenth of that of bfloat16, at its speed.
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

constexpr int kTileRows = kFixedRows;
constexpr int64_t kBlockWords = kCodeBlock / 2;

/// Adds products of pairs of neighbours to `sum`. GCC 12 copies `sum` around the intrinsic, which costs half the speed.
inline __m512i add_products(__m512i sum, __m512i a, __m512i b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

/// Computes the sums of kRows rows for the 32 outputs of a panel. The registers hold the sums of a block as integers,
/// and those of all blocks before it as float32.
template <int kRows>
void accumulate(const FixedTileInput& input, const uint32_t* panel, __m512 (&acc)[kTileRows][2]) {
  const auto& [data, row_stride, tap_stride, taps, words] = input.numbers;
  __m512 sums[kRows][2];
#pragma GCC unroll 7
  for (int m = 0; m < kRows; ++m) sums[m][0] = sums[m][1] = _mm512_setzero_ps();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const uint32_t* row = data + tap * tap_stride;
    const float* scale = input.scales + tap * tap_stride / kBlockWords;
    for (int64_t block = 0; block < words; block += kBlockWords, row += kBlockWords, ++scale) {
      __m512i products[kRows][2];
#pragma GCC unroll 7
      for (int m = 0; m < kRows; ++m) products[m][0] = products[m][1] = _mm512_setzero_si512();
      for (int64_t k = 0; k < kBlockWords; ++k, panel += kPanel) {
        const __m512i b0 = _mm512_load_si512(panel), b1 = _mm512_load_si512(panel + 16);
#pragma GCC unroll 7
        for (int m = 0; m < kRows; ++m) {
          const __m512i a = _mm512_set1_epi32(static_cast<int>(row[m * row_stride + k]));
          products[m][0] = add_products(products[m][0], a, b0);
          products[m][1] = add_products(products[m][1], a, b1);
        }
      }
#pragma GCC unroll 7
      for (int m = 0; m < kRows; ++m) {
        const __m512 of_row = _mm512_set1_ps(scale[m * row_stride / kBlockWords]);
        sums[m][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[m][0]), of_row, sums[m][0]);
        sums[m][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[m][1]), of_row, sums[m][1]);
      }
    }
  }
#pragma GCC unroll 7
  for (int m = 0; m < kRows; ++m) acc[m][0] = sums[m][0], acc[m][1] = sums[m][1];
}

template <int kRows = kTileRows>
void accumulate_rows(const FixedTileInput& input, int rows, const uint32_t* panel, __m512 (&acc)[kTileRows][2]) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return accumulate_rows<kRows - 1>(input, rows, panel, acc);
  }
  accumulate<kRows>(input, panel, acc);
}

/// Rounds a block. A block with a number that is not finite becomes NaN.
void store_block(__m512 low, __m512 high, int16_t* out, float* scale) {
  constexpr float kSmallest = 1e-30f;  // the inverse of its scale is finite
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const __m512 inverse = _mm512_set1_ps(largest > kSmallest ? kLargestFixed / largest : 0.0f);
  const bool has_nan = _mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0;
  *scale = has_nan ? __builtin_nanf("") : largest / kLargestFixed;
  auto* const halves = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(halves, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(_mm512_mul_ps(low, inverse))));
  _mm256_storeu_si256(halves + 1, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(_mm512_mul_ps(high, inverse))));
}

/// Constants of 16 outputs; zero where the epilogue has none.
struct Channels {
  Mask mask;
  __m512 weight_scales, bias, frequency, gain;

  Channels(const FixedTileEpilogue& epilogue, int column, int outputs) : mask(first_lanes(outputs - column)) {
    const auto read = [&](const float* p) { return p ? load(p + column, mask) : _mm512_setzero_ps(); };
    weight_scales = read(epilogue.weight_scales);
    bias = read(epilogue.bias);
    frequency = read(epilogue.snake_frequency);
    gain = read(epilogue.snake_gain);
  }
};

void finish(int rows, int outputs, const FixedTileEpilogue& epilogue, const __m512 (&acc)[kTileRows][2]) {
  const Channels channels[2] = {{epilogue, 0, outputs}, {epilogue, 16, outputs}};
  for (int m = 0; m < rows; ++m) {
    __m512 snaked[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const auto& [mask, weight_scales, bias, frequency, gain] = channels[half];
      const int64_t column = 16 * half;
      __m512 y = _mm512_fmadd_ps(acc[m][half], weight_scales, bias);
      if (epilogue.residual) {
        y = _mm512_add_ps(y, load(epilogue.residual + m * epilogue.residual_stride + column, mask));
      }
      if (epilogue.out) store(epilogue.out + m * epilogue.out_stride + column, mask, y);
      if (epilogue.out_float) store(epilogue.out_float + m * epilogue.out_float_stride + column, mask, y);
      if (epilogue.snake_out) snaked[half] = snake(y, frequency, gain);
    }
    if (epilogue.snake_out) {
      const int64_t first = m * epilogue.snake_stride;
      store_block(snaked[0], snaked[1], epilogue.snake_out + first, epilogue.snake_scales + first / kCodeBlock);
    }
  }
}

/// A residual is often no longer in the cache, and its strided rows are not prefetched by the processor.
void prefetch_residual(int rows, const FixedTileEpilogue& epilogue) {
  for (int m = 0; m < rows; ++m) {
    const float* const row = epilogue.residual + m * epilogue.residual_stride;
    for (int column = 0; column < kPanel; column += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(row + column), _MM_HINT_T0);
    }
  }
}

}  // namespace

void tiles_fixed_avx512(const FixedTileInput& input, int64_t rows, const uint32_t* panel, int outputs,
                        const FixedTileEpilogue& epilogue) {
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int count = static_cast<int>(rows - row < kTileRows ? rows - row : kTileRows);
    const FixedTileEpilogue of_tile = epilogue.from(row, 0);
    if (epilogue.residual) prefetch_residual(count, of_tile);
    __m512 acc[kTileRows][2];
    accumulate_rows(input.from(row), count, panel, acc);
    finish(count, outputs, of_tile, acc);
  }
}

}  // namespace carillon::kernels
