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

// The codes of a block are interleaved (matrix.h): neighbours are numbers i, 8 + i, 16 + i and 24 + i. Each struct
// unpacks them into two vectors of 16, and arranges the numbers of x likewise: vector j of `eights` has the numbers
// 8 j + i.

struct Int8Codes {
  [[gnu::always_inline]] static void unpack(const StoredMatrix& matrix, int64_t block, Shorts16 (&codes)[2],
                                            Vector& scale, Vector&) {
    const auto* const data = static_cast<const int8_t*>(matrix.data) + block * kCodeBlock;
    prefetch_ahead(data);
    for (int i = 0; i < 2; ++i) codes[i] = __builtin_convertvector(read<Bytes16>(data + 16 * i), Shorts16);
    scale = all(widen(matrix.scales[block]));
  }
  static void arrange(const Integers (&eights)[4], int16_t* out) {
    const Words a = pair(eights[0], eights[1]), b = pair(eights[2], eights[3]);
    const Words first = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    const Words second = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + 16, &second, sizeof second);
  }
};

struct Int4Codes {
  [[gnu::always_inline]] static void unpack(const StoredMatrix& matrix, int64_t block, Shorts16 (&codes)[2],
                                            Vector& scale, Vector& lowest) {
    const auto* const data = static_cast<const uint8_t*>(matrix.data) + block * kCodeBlock / 2;
    prefetch_ahead(data);
    const auto pairs = __builtin_convertvector(read<Codes16>(data), Shorts16);
    codes[0] = pairs & 15;
    codes[1] = pairs >> 4;
    scale = all(widen(matrix.scales[2 * block]));
    lowest = all(widen(matrix.scales[2 * block + 1]));
  }
  static void arrange(const Integers (&eights)[4], int16_t* out) {
    const Words even = pair(eights[0], eights[2]), odd = pair(eights[1], eights[3]);
    std::memcpy(out, &even, sizeof even);
    std::memcpy(out + 16, &odd, sizeof odd);
  }
};

/// Multiplies kOutputs rows of the matrix by kRows rows of x.
template <typename Codes, int kRows, int kOutputs>
inline void multiply(const RoundedRows& x, int row, const StoredMatrix& matrix, int64_t output, float* y,
                     int64_t y_stride) {
  const int64_t blocks = matrix.depth / kCodeBlock;
  Vector acc[kRows][kOutputs] = {};
  for (int64_t k = 0; k < blocks; ++k) {
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      Shorts16 codes[2];
      Vector scale, lowest{};
      Codes::unpack(matrix, (output + o) * blocks + k, codes, scale, lowest);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const int64_t block = (row + r) * blocks + k;
        const int16_t* const numbers = x.numbers + block * kCodeBlock;
        const Integers products = multiply_pairs(codes[0], read<Shorts16>(numbers)) +
                                  multiply_pairs(codes[1], read<Shorts16>(numbers + 16));
        acc[r][o] += __builtin_convertvector(products, Vector) * (scale * x.scales[block]);
        if constexpr (std::is_same_v<Codes, Int4Codes>) acc[r][o] += lowest * x.means[block];
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) y[(row + r) * y_stride + output + o] = sum(acc[r][o]);
  }
}

template <typename Codes>
void round_blocks(const float* x, int64_t blocks, const RoundedRows& out) {
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
    Codes::arrange(rounded, out.numbers + block * kCodeBlock);
    out.scales[block] = scale + excess;
    out.means[block] = scale * sum(total) / kLanes + excess;
  }
}

}  // namespace

void round_rows(const float* x, int64_t rows, int64_t depth, StoredForm form, const RoundedRows& out) {
  const int64_t blocks = rows * depth / kCodeBlock;
  form == StoredForm::kInt8 ? round_blocks<Int8Codes>(x, blocks, out) : round_blocks<Int4Codes>(x, blocks, out);
}

void gemv_codes(const RoundedRows& x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  const auto run = [&]<typename Codes>() {
    for_each_tile<2>(rows, matrix.outputs, [&]<int kRows, int kOutputs>(int row, int64_t output) {
      multiply<Codes, kRows, kOutputs>(x, row, matrix, output, y, y_stride);
    });
  };
  matrix.form == StoredForm::kInt8 ? run.template operator()<Int8Codes>() : run.template operator()<Int4Codes>();
}

}  // namespace carillon::kernels
