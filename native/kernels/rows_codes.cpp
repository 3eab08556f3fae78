// Products of a few rows with a matrix of 8-bit or 4-bit codes, in integers of 16 bits.
#include <type_traits>

#include "kernels/simd_float.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace carillon::kernels {
namespace {

using Shorts16 = int16_t __attribute__((vector_size(32)));
using Bytes16 = int8_t __attribute__((vector_size(16)));
using Codes16 = uint8_t __attribute__((vector_size(16)));

/// Sums of the products of neighbours.
inline Integers multiply_pairs(Shorts16 a, Shorts16 b) {
#if defined(__AVX2__)
  return (Integers)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
  const auto even = [](Shorts16 v) { return (Integers)v << 16 >> 16; };
  const auto odd = [](Shorts16 v) { return (Integers)v >> 16; };
  return even(a) * even(b) + odd(a) * odd(b);
#endif
}

inline Vector absolute(Vector v) { return (Vector)((Words)v & 0x7fffffffu); }

/// Puts the low 16 bits of `low` beside those of `high`.
inline Words pair(Integers low, Integers high) { return ((Words)low & 0xffffu) | ((Words)high << 16); }

/// Eight numbers of float16.
inline Vector widen_eight(const uint16_t* data) {
#if defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
#else
  Vector wide;
  for (int i = 0; i < kLanes; ++i) wide[i] = widen(data[i]);
  return wide;
#endif
}

/// Copies up to eight elements; zeros follow.
template <typename T>
inline const T* padded(const T* data, int64_t count, int64_t whole, T* buffer) {
  if (count == whole) return data;
  std::memset(buffer, 0, static_cast<size_t>(whole) * sizeof(T));
  std::memcpy(buffer, data, static_cast<size_t>(count) * sizeof(T));
  return buffer;
}

// The codes of a block are interleaved (matrix.h): neighbours are numbers i, 8 + i, 16 + i and 24 + i. Each struct
// unpacks them into two vectors of 16, and arranges the numbers of x likewise: vector j of `eights` has the numbers
// 8 j + i.

struct Int8Codes {
  static constexpr bool kHasLowest = false;
  static constexpr int64_t kBlockBytes = 32, kBlockScales = 1;

  [[gnu::always_inline]] static void unpack(const uint8_t* data, Shorts16 (&codes)[2]) {
    for (int i = 0; i < 2; ++i) codes[i] = __builtin_convertvector(read<Bytes16>(data + 16 * i), Shorts16);
  }
  /// Scales of eight blocks.
  [[gnu::always_inline]] static void read_scales(const uint16_t* data, Vector& scales, Vector&) {
    scales = widen_eight(data);
  }
  static void arrange(const Integers (&eights)[4], Words& first, Words& second) {
    const Words a = pair(eights[0], eights[1]), b = pair(eights[2], eights[3]);
    first = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    second = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

struct Int4Codes {
  static constexpr bool kHasLowest = true;
  static constexpr int64_t kBlockBytes = 16, kBlockScales = 2;

  [[gnu::always_inline]] static void unpack(const uint8_t* data, Shorts16 (&codes)[2]) {
    const auto pairs = __builtin_convertvector(read<Codes16>(data), Shorts16);
    codes[0] = pairs & 15;
    codes[1] = pairs >> 4;
  }
  [[gnu::always_inline]] static void read_scales(const uint16_t* data, Vector& scales, Vector& lowest) {
    const Vector a = widen_eight(data), b = widen_eight(data + kLanes);
    scales = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    lowest = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  }
  static void arrange(const Integers (&eights)[4], Words& first, Words& second) {
    first = pair(eights[0], eights[2]);
    second = pair(eights[1], eights[3]);
  }
};

/// Multiplies kOutputs rows of the matrix by kRows rows of x.
template <typename Codes, int kRows, int kOutputs>
inline void multiply(const RoundedRows& x, const StoredMatrix& matrix, int64_t output, float* y, int64_t y_stride) {
  const int64_t blocks = matrix.depth / kCodeBlock, row_numbers = (blocks + 1) / 2 * 2 * kCodeBlock;
  const auto* const data = static_cast<const uint8_t*>(matrix.data) + output * blocks * Codes::kBlockBytes;
  const uint16_t* const scales = matrix.scales + output * blocks * Codes::kBlockScales;
  Vector acc[kRows][kOutputs] = {};
  for (int64_t first = 0; first < blocks; first += kLanes) {
    const int64_t count = blocks - first < kLanes ? blocks - first : kLanes;
    float of_rows[kRows][kOutputs][kLanes];
    for (int o = 0; o < kOutputs; ++o) {
      uint16_t few_scales[Codes::kBlockScales * kLanes];
      Vector scale, lowest{};
      Codes::read_scales(padded(scales + (o * blocks + first) * Codes::kBlockScales, count * Codes::kBlockScales,
                                kLanes * Codes::kBlockScales, few_scales),
                         scale, lowest);
      for (int r = 0; r < kRows; ++r) {
        float few[kLanes];
        store(of_rows[r][o], scale * load(padded(x.scales + r * blocks + first, count, kLanes, few)));
        if constexpr (Codes::kHasLowest) {
          acc[r][o] += lowest * load(padded(x.sums + r * blocks + first, count, kLanes, few));
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block = first + i, place = block / 2 * 2 * kCodeBlock + block % 2 * (kCodeBlock / 2);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) {
        const uint8_t* const from = data + (o * blocks + block) * Codes::kBlockBytes;
        prefetch_ahead(from);
        Shorts16 codes[2];
        Codes::unpack(from, codes);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const int16_t* const numbers = x.numbers + r * row_numbers + place;
          const Integers products = multiply_pairs(codes[0], read<Shorts16>(numbers)) +
                                    multiply_pairs(codes[1], read<Shorts16>(numbers + kCodeBlock));
          acc[r][o] += __builtin_convertvector(products, Vector) * all(of_rows[r][o][i]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) y[r * y_stride + output + o] = sum(acc[r][o]);
  }
}

/// Rounds the blocks of one row.
template <typename Codes>
void round_row(const float* x, int64_t blocks, const RoundedRows& out) {
  constexpr int kLargest = 32767;
  constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23: floats near it have no fraction bits
  constexpr float kSmallestScale = 1.2e-38f;  // the inverse of a smaller one may be infinite
  for (int64_t block = 0; block < blocks; ++block, x += kCodeBlock) {
    Vector v[4], magnitudes{}, highest{};
    for (int i = 0; i < 4; ++i) {
      v[i] = load(x + i * kLanes);
      magnitudes += absolute(v[i]);
      highest = absolute(v[i]) > highest ? absolute(v[i]) : highest;
    }
    float largest = 0;
    for (int lane = 0; lane < kLanes; ++lane) largest = highest[lane] > largest ? highest[lane] : largest;
    const float excess = sum(magnitudes) - sum(magnitudes);  // NaN if a number is not finite
    const float scale = largest / kLargest;
    const float inverse = scale > kSmallestScale ? 1 / scale : 0;
    Integers rounded[4];
    Vector total{};
    for (int i = 0; i < 4; ++i) {
      const Vector whole = (v[i] * inverse + kWhole) - kWhole;
      rounded[i] = __builtin_convertvector(whole, Integers);
      total += whole;
    }
    Words first, second;
    Codes::arrange(rounded, first, second);
    int16_t* const place = out.numbers + block / 2 * 2 * kCodeBlock + block % 2 * (kCodeBlock / 2);
    std::memcpy(place, &first, sizeof first);
    std::memcpy(place + kCodeBlock, &second, sizeof second);
    out.scales[block] = scale + excess;
    out.sums[block] = scale * sum(total) + excess;
  }
}

}  // namespace

void round_rows(const float* x, int64_t rows, int64_t depth, StoredForm form, const RoundedRows& out) {
  const int64_t blocks = depth / kCodeBlock;
  for (int64_t row = 0; row < rows; ++row) {
    (form == StoredForm::kInt8 ? round_row<Int8Codes> : round_row<Int4Codes>)(x + row * depth, blocks,
                                                                               out.from(row, blocks));
  }
}

void gemv_codes(const RoundedRows& x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  const auto run = [&]<typename Codes>() {
    for_each_tile<4, 2>(rows, matrix.outputs, [&]<int kRows, int kOutputs>(int row, int64_t output) {
      multiply<Codes, kRows, kOutputs>(x.from(row, matrix.depth / kCodeBlock), matrix, output, y + row * y_stride,
                                       y_stride);
    });
  };
  matrix.form == StoredForm::kInt8 ? run.template operator()<Int8Codes>() : run.template operator()<Int4Codes>();
}

}  // namespace carillon::kernels
