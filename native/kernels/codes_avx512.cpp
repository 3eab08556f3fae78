// Matrices of 8-bit or 4-bit codes in products of bfloat16. A code has at most 8 bits, so bfloat16 holds it exactly;
// scales are applied in float32.
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

// Products take two blocks A and B at a time. Lanes 0 to 7 of a vector of 16 sums belong to A, lanes 8 to 15 to B.

constexpr int64_t kPairNumbers = 2 * kCodeBlock;
constexpr int64_t kHalves = 16;  // scales converted at a time
constexpr int64_t kAheadBytes = 4096;

/// Lane constants of a form. The codes of a block are interleaved (matrix.h): position 4 i + j has number 8 j + i.
struct Int8Pairs {
  static constexpr bool kHasLowest = false;
  static constexpr int64_t kPairBytes = 64;
  /// Position in the block of word `lane` (0 to 15) of vector 0 or 1.
  static constexpr int position(int vector, int lane) { return 16 * vector + lane; }

  /// Codes of blocks A and B as bfloat16.
  static void unpack(const uint8_t* a, const uint8_t* b, __m512i (&codes)[2]) {
    for (int vector = 0; vector < 2; ++vector) {
      codes[vector] = (__m512i)_mm512_cvtne2ps_pbh(numbers(b + 16 * vector), numbers(a + 16 * vector));
    }
  }

 private:
  static __m512 numbers(const uint8_t* data) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data))));
  }
};

struct Int4Pairs {
  static constexpr bool kHasLowest = true;
  static constexpr int64_t kPairBytes = 32;
  static constexpr int position(int vector, int lane) { return 2 * lane + vector; }

  static void unpack(const uint8_t* a, const uint8_t* b, __m512i (&codes)[2]) {
    // Entry i is i % 16 as bfloat16: a permutation reads the lowest five bits of a word.
    alignas(64) static constexpr uint16_t kNumbers[32] = {
        0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120,
        0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
        0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};
    const __m512i table = _mm512_load_si512(kNumbers);
    const auto* const of_a = reinterpret_cast<const __m128i*>(a);
    const auto* const of_b = reinterpret_cast<const __m128i*>(b);
    const __m512i pairs = _mm512_cvtepu8_epi16(_mm256_loadu2_m128i(of_b, of_a));
    codes[0] = _mm512_permutexvar_epi16(pairs, table);
    codes[1] = _mm512_permutexvar_epi16(_mm512_srli_epi16(pairs, 4), table);
  }
};

/// Computes kOutputs outputs, from `output` on, for each of kRows rows.
template <int kRows, int kOutputs, typename Form>
inline void dot(const CodeRows& x, const StoredMatrix& matrix, int64_t output, const float* bias, uint16_t* y,
                int64_t y_stride) {
  constexpr int64_t kPairs = kHalves / (Form::kHasLowest ? 4 : 2);  // whose scales are kHalves numbers
  // Indices of a pair's scales among kHalves numbers, by lane.
  constexpr int kStep = Form::kHasLowest ? 2 : 1;
  const __m512i next_scales = _mm512_set1_epi32(2 * kStep), ones = _mm512_set1_epi32(1);
  const __m512i first_scales = _mm512_maskz_set1_epi32(0xff00, kStep);
  const int64_t blocks = matrix.depth / kCodeBlock, pairs = (blocks + 1) / 2;
  const int64_t row_bytes = blocks * Form::kPairBytes / 2, row_halves = blocks * kStep;
  const auto* const data = static_cast<const uint8_t*>(matrix.data) + output * row_bytes;
  const uint16_t* const scales = matrix.scales + output * row_halves;
  __m512 sums[kRows][kOutputs];
#pragma GCC unroll 8
  for (int i = 0; i < kRows * kOutputs; ++i) sums[i / kOutputs][i % kOutputs] = _mm512_setzero_ps();
  for (int64_t first = 0, half = 0; first < pairs; first += kPairs, half += kHalves) {
    __m512 of_pairs[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      const auto mask = first_lanes(row_halves - half);
      of_pairs[o] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, scales + o * row_halves + half));
    }
    const int64_t last = first + kPairs < pairs ? first + kPairs : pairs;
    __m512i lanes = first_scales;
    for (int64_t pair = first; pair < last; ++pair) {
      const int64_t to_b = 2 * pair + 1 < blocks ? Form::kPairBytes / 2 : 0;  // a last single block is read twice
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        const uint8_t* const a = data + o * row_bytes + pair * Form::kPairBytes;
        _mm_prefetch(reinterpret_cast<const char*>(a + kAheadBytes), _MM_HINT_T0);
        __m512i codes[2];
        Form::unpack(a, a + to_b, codes);
        const __m512 scale = _mm512_permutexvar_ps(lanes, of_pairs[o]);
        __m512 lowest = _mm512_setzero_ps();
        if constexpr (Form::kHasLowest) lowest = _mm512_permutexvar_ps(_mm512_add_epi32(lanes, ones), of_pairs[o]);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const int64_t index = r * pairs + pair;
          const uint16_t* const numbers = x.numbers + index * kPairNumbers;
          __m512 products = multiply_add(_mm512_setzero_ps(), _mm512_load_si512(numbers), codes[0]);
          products = multiply_add(products, _mm512_load_si512(numbers + kCodeBlock), codes[1]);
          sums[r][o] = _mm512_fmadd_ps(products, scale, sums[r][o]);
          if constexpr (Form::kHasLowest) {
            sums[r][o] = _mm512_fmadd_ps(_mm512_load_ps(x.sums + 16 * index), lowest, sums[r][o]);
          }
        }
      }
      lanes = _mm512_add_epi32(lanes, next_scales);
    }
  }
  for (int o = 0; o < kOutputs; ++o) {
    const float offset = bias ? bias[output + o] : 0.0f;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float total = _mm512_reduce_add_ps(sums[r][o]) + offset;
      store(y + r * y_stride + output + o, Mask(1), _mm512_set1_ps(total));
    }
  }
}

template <typename Form, int kRows = kGemvRows>
void multiply(const CodeRows& x, int rows, const StoredMatrix& matrix, const float* bias, uint16_t* y,
              int64_t y_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply<Form, kRows - 1>(x, rows, matrix, bias, y, y_stride);
  }
  constexpr int kOutputs = !Form::kHasLowest || kRows > 4 ? 1 : kRows <= 2 ? 4 : 2;  // the fastest on Zen 5
  int64_t output = 0;
  for (; output + kOutputs <= matrix.outputs; output += kOutputs) {
    dot<kRows, kOutputs, Form>(x, matrix, output, bias, y, y_stride);
  }
  for (; output < matrix.outputs; ++output) dot<kRows, 1, Form>(x, matrix, output, bias, y, y_stride);
}

template <typename Form>
void arrange(const uint16_t* x, int64_t rows, int64_t depth, const CodeRows& out) {
  alignas(64) uint16_t order[kPairNumbers];
  for (int word = 0; word < kPairNumbers; ++word) {
    const int vector = word / 32, block = word / 16 % 2, position = Form::position(vector, word % 16);
    order[word] = static_cast<uint16_t>(block * kCodeBlock + 8 * (position % 4) + position / 4);
  }
  const __m512i first = _mm512_load_si512(order), second = _mm512_load_si512(order + 32);
  const __m512i ones = _mm512_set1_epi16(0x3f80);
  int64_t index = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < depth; k += kPairNumbers, ++index) {
      const uint16_t* const from = x + row * depth + k;
      const __m512i a = _mm512_loadu_si512(from);
      const __m512i b = depth - k > kCodeBlock ? _mm512_loadu_si512(from + kCodeBlock) : _mm512_setzero_si512();
      const __m512i words[2] = {_mm512_permutex2var_epi16(a, first, b), _mm512_permutex2var_epi16(a, second, b)};
      _mm512_store_si512(out.numbers + index * kPairNumbers, words[0]);
      _mm512_store_si512(out.numbers + index * kPairNumbers + kCodeBlock, words[1]);
      const __m512 sums = multiply_add(multiply_add(_mm512_setzero_ps(), words[0], ones), words[1], ones);
      _mm512_store_ps(out.sums + 16 * index, sums);
    }
  }
}

/// Numbers 16 half .. 16 half + 15 of a block, without the scale.
inline __m512 codes_in_order(const StoredMatrix& matrix, int64_t block, int half) {
  const bool is_int8 = matrix.form == StoredForm::kInt8;
  const auto* const data = static_cast<const uint8_t*>(matrix.data) + block * kCodeBlock / (is_int8 ? 1 : 2);
  const auto shifts = [](int first, int second) {
    return _mm512_mask_blend_epi32(0xff00, _mm512_set1_epi32(first), _mm512_set1_epi32(second));
  };
  if (is_int8) {
    const __m256i fours = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
    const __m512i left = _mm512_sllv_epi32(_mm512_broadcast_i64x4(fours), shifts(24 - 16 * half, 16 - 16 * half));
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(left, 24));
  }
  const __m256i fours = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
  const __m512i right = _mm512_srlv_epi32(_mm512_broadcast_i64x4(fours), shifts(8 * half, 8 * half + 4));
  return _mm512_cvtepi32_ps(_mm512_and_si512(right, _mm512_set1_epi32(15)));
}

}  // namespace

void arrange_rows_avx512(const uint16_t* x, int64_t rows, int64_t depth, StoredForm form, const CodeRows& out) {
  (form == StoredForm::kInt8 ? arrange<Int8Pairs> : arrange<Int4Pairs>)(x, rows, depth, out);
}

void gemv_codes_avx512(const CodeRows& x, int rows, const StoredMatrix& matrix, const float* bias, uint16_t* y,
                       int64_t y_stride) {
  (matrix.form == StoredForm::kInt8 ? multiply<Int8Pairs> : multiply<Int4Pairs>)(x, rows, matrix, bias, y, y_stride);
}

void decode_rows_avx512(const StoredMatrix& matrix, int64_t first, int64_t count, uint16_t* out) {
  const int64_t blocks = matrix.depth / kCodeBlock;
  const bool has_lowest = matrix.form == StoredForm::kInt4;
  for (int64_t block = first * blocks; block < (first + count) * blocks; ++block, out += kCodeBlock) {
    const uint16_t* const scales = matrix.scales + (has_lowest ? 2 : 1) * block;
    const __m512 scale = _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(scales[0])));
    const __m512 lowest =
        has_lowest ? _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(scales[1]))) : _mm512_setzero_ps();
    for (int half = 0; half < 2; ++half) {
      store(out + 16 * half, Mask(0xffff), _mm512_fmadd_ps(codes_in_order(matrix, block, half), scale, lowest));
    }
  }
}

}  // namespace carillon::kernels
