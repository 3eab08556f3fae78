#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

constexpr int kTileRows = kAvx512Rows;

/// Computes the sums of kRows rows for the 32 outputs of a panel. The registers hold kRows x 2 accumulators over the
/// whole depth, two vectors of the panel and one broadcast word of the input.
template <int kRows>
void accumulate(const TileInput& input, const uint32_t* panel, __m512 (&acc)[kTileRows][2]) {
  __m512 sum[kRows][2];
#pragma GCC unroll 14
  for (int m = 0; m < kRows; ++m) sum[m][0] = sum[m][1] = _mm512_setzero_ps();
  const int64_t stride = input.row_stride;
  for (int64_t tap = 0; tap < input.taps; ++tap) {
    const uint32_t* row = input.data + tap * input.tap_stride;
    // Three rows share a pointer, because an x86 address can be base, base + stride or base + 2 * stride.
    const uint32_t* r0 = row;
    const uint32_t* r3 = row + 3 * stride;
    const uint32_t* r6 = row + 6 * stride;
    const uint32_t* r9 = row + 9 * stride;
    const uint32_t* r12 = row + 12 * stride;
    for (int64_t k = 0; k < input.words; ++k) {
      const __m512i b0 = _mm512_load_si512(panel);
      const __m512i b1 = _mm512_load_si512(panel + 16);
      panel += kPanel;
#pragma GCC unroll 14
      for (int m = 0; m < kRows; ++m) {
        const uint32_t* base = m < 3 ? r0 : m < 6 ? r3 : m < 9 ? r6 : m < 12 ? r9 : r12;
        const __m512i a = _mm512_set1_epi32(static_cast<int>(base[(m % 3) * stride + k]));
        sum[m][0] = multiply_add(sum[m][0], a, b0);
        sum[m][1] = multiply_add(sum[m][1], a, b1);
      }
    }
  }
#pragma GCC unroll 14
  for (int m = 0; m < kRows; ++m) acc[m][0] = sum[m][0], acc[m][1] = sum[m][1];
}

template <int kRows = kTileRows>
void accumulate_rows(const TileInput& input, int rows, const uint32_t* panel, __m512 (&acc)[kTileRows][2]) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return accumulate_rows<kRows - 1>(input, rows, panel, acc);
  }
  accumulate<kRows>(input, panel, acc);
}

/// Transposes 16 outputs of 16 words. Before, rows[i] holds the words of output i; after, word i of each output.
inline void transpose(__m512i (&rows)[16]) {
  __m512i pairs[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  // quads[4 * i + j] holds word j of each 128-bit lane, for the outputs 4 * i to 4 * i + 3.
  __m512i quads[16];
  for (int i = 0; i < 16; i += 4) {
    quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i even_low = _mm512_shuffle_i32x4(quads[j], quads[4 + j], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(quads[j], quads[4 + j], 0xdd);
    const __m512i even_high = _mm512_shuffle_i32x4(quads[8 + j], quads[12 + j], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(quads[8 + j], quads[12 + j], 0xdd);
    rows[j] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    rows[4 + j] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    rows[8 + j] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    rows[12 + j] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
}

}  // namespace

void pack_panel_avx512(const uint32_t* weight, int64_t row_stride, int outputs, int64_t words, uint32_t* panel) {
  // Prefetch every row, because there are more rows than the hardware prefetcher tracks. Prefetch into L2, because rows
  // whose distance is a power of two would evict each other from L1.
  constexpr int64_t kPrefetchWords = 128;
  for (int64_t word = 0; word < words; word += 16) {
    const Mask mask = first_lanes(words - word);
    for (int half = 0; half < kPanel; half += 16) {
      __m512i rows[16];
      for (int i = 0; i < 16; ++i) {
        _mm_prefetch(reinterpret_cast<const char*>(weight + (half + i) * row_stride + word + kPrefetchWords),
                     _MM_HINT_T1);
        rows[i] = half + i < outputs ? _mm512_maskz_loadu_epi32(mask, weight + (half + i) * row_stride + word)
                                     : _mm512_setzero_si512();
      }
      transpose(rows);
      const int count = words - word < 16 ? static_cast<int>(words - word) : 16;
      for (int j = 0; j < count; ++j) _mm512_store_si512(panel + (word + j) * kPanel + half, rows[j]);
    }
  }
}

void tiles_avx512(const TileInput& input, int64_t rows, const uint32_t* panel, int outputs,
                  const TileEpilogue& epilogue) {
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int count = static_cast<int>(rows - row < kTileRows ? rows - row : kTileRows);
    __m512 acc[kTileRows][2];
    accumulate_rows(input.from(row), count, panel, acc);
    finish_tile(count, outputs, epilogue.from(row, 0), [&](int m, int half) { return acc[m][half]; });
  }
}

}  // namespace carillon::kernels
