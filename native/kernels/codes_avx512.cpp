// Matrices of 8-bit or 4-bit codes: products with a few rows in integers of 16 bits, and conversion to bfloat16.
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

// Products take two blocks A and B at a time. Lanes 0 to 7 of a vector of sums belong to A, lanes 8 to 15 to B. Scales
// are read for 16 blocks at a time.

constexpr int64_t kBlocks = 16, kPairNumbers = 2 * kCodeBlock;
constexpr int64_t kAheadBytes = 8192;

inline __m256i halves(const uint8_t* a, const uint8_t* b) {
  return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(b), reinterpret_cast<const __m128i*>(a));
}

/// Reads up to 16 numbers of float16.
inline __m512 widen(const uint16_t* data, int64_t count) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), data));
}

struct Int8Pairs {
  static constexpr bool kHasLowest = false;
  static constexpr int64_t kBlockBytes = 32, kBlockScales = 1;

  static void unpack(const uint8_t* a, const uint8_t* b, __m512i (&codes)[2]) {
    codes[0] = _mm512_cvtepi8_epi16(halves(a, b));
    codes[1] = _mm512_cvtepi8_epi16(halves(a + 16, b + 16));
  }
  static void read_scales(const uint16_t* data, int64_t count, __m512& scales, __m512&) { scales = widen(data, count); }
};

struct Int4Pairs {
  static constexpr bool kHasLowest = true;
  static constexpr int64_t kBlockBytes = 16, kBlockScales = 2;

  static void unpack(const uint8_t* a, const uint8_t* b, __m512i (&codes)[2]) {
    const __m512i both = _mm512_cvtepu8_epi16(halves(a, b));
    codes[0] = _mm512_and_si512(both, _mm512_set1_epi16(15));
    codes[1] = _mm512_srli_epi16(both, 4);
  }
  static void read_scales(const uint16_t* data, int64_t count, __m512& scales, __m512& lowest) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512 first = widen(data, 2 * count), second = widen(data + kBlocks, 2 * count - kBlocks);
    scales = _mm512_permutex2var_ps(first, even, second);
    lowest = _mm512_permutex2var_ps(first, _mm512_add_epi32(even, _mm512_set1_epi32(1)), second);
  }
};

/// Row `output` of the matrix times kRows rows of x.
template <typename Form, int kRows>
class RowProduct {
 public:
  RowProduct(const RoundedRows& x, const StoredMatrix& matrix, int64_t output)
      : x_(x),
        blocks_(matrix.depth / kCodeBlock),
        data_(static_cast<const uint8_t*>(matrix.data) + output * blocks_ * Form::kBlockBytes),
        scales_(matrix.scales + output * blocks_ * Form::kBlockScales) {
    for (auto& sums : sums_) sums[0] = sums[1] = _mm512_setzero_ps();
    int64_t first = 0;
    for (; first + kBlocks <= blocks_; first += kBlocks) add<kBlocks>(first, kBlocks);
    if (first < blocks_) add<0>(first, blocks_ - first);
  }

  float sum(int row) const { return _mm512_reduce_add_ps(_mm512_add_ps(sums_[row][0], sums_[row][1])); }

 private:
  /// Adds the products of blocks first .. first + count - 1. The compiler unrolls if kCount, which is count or 0, is
  /// known.
  template <int kCount>
  [[gnu::always_inline]] void add(int64_t first, int64_t count) {
    const Mask mask = first_lanes(count);
    __m512 scale, lowest, of_rows[kRows];
    Form::read_scales(scales_ + first * Form::kBlockScales, count, scale, lowest);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      of_rows[r] = _mm512_mul_ps(scale, load(x_.scales + r * blocks_ + first, mask));
      if constexpr (Form::kHasLowest) {
        sums_[r][0] = _mm512_fmadd_ps(lowest, load(x_.sums + r * blocks_ + first, mask), sums_[r][0]);
      }
    }
    __m512i lanes = _mm512_maskz_set1_epi32(0xff00, 1);
#pragma GCC unroll 8
    for (int i = 0; i < (kCount ? kCount : count); i += 2) {
      const int64_t a = first + i, b = kCount || i + 1 < count ? a + 1 : a;  // beside a last single block: its scale is 0
      const uint8_t* const from = data_ + a * Form::kBlockBytes;
      _mm_prefetch(reinterpret_cast<const char*>(from + kAheadBytes), _MM_HINT_T0);
      __m512i codes[2];
      Form::unpack(from, data_ + b * Form::kBlockBytes, codes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const int16_t* const numbers = x_.from(r, blocks_).numbers + a * kCodeBlock;
        __m512i products = _mm512_dpwssd_epi32(_mm512_setzero_si512(), codes[0], _mm512_loadu_si512(numbers));
        products = _mm512_dpwssd_epi32(products, codes[1], _mm512_loadu_si512(numbers + kCodeBlock));
        __m512& sum = sums_[r][i / 2 % 2];
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), _mm512_permutexvar_ps(lanes, of_rows[r]), sum);
      }
      lanes = _mm512_add_epi32(lanes, _mm512_set1_epi32(2));
    }
  }

  const RoundedRows x_;
  const int64_t blocks_;
  const uint8_t* const data_;
  const uint16_t* const scales_;
  __m512 sums_[kRows][2];  // two chains of additions: a product waits for the one before the last
};

template <typename Form, int kRows = kGemvRows>
void multiply_rows(const RoundedRows& x, int rows, const StoredMatrix& matrix, int64_t output, float* y,
                   int64_t y_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<Form, kRows - 1>(x, rows, matrix, output, y, y_stride);
  }
  const RowProduct<Form, kRows> product(x, matrix, output);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) y[r * y_stride + output] = product.sum(r);
  if (rows == kRows) return;
  const RoundedRows others = x.from(kRows, matrix.depth / kCodeBlock);
  multiply_rows<Form>(others, rows - kRows, matrix, output, y + kRows * y_stride, y_stride);
}

template <typename Form>
void multiply_outputs(const RoundedRows& x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  for (int64_t output = 0; output < matrix.outputs; ++output) {
    multiply_rows<Form>(x, rows, matrix, output, y, y_stride);
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

void gemv_codes_avx512(const RoundedRows& x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  const bool is_int8 = matrix.form == StoredForm::kInt8;
  (is_int8 ? multiply_outputs<Int8Pairs> : multiply_outputs<Int4Pairs>)(x, rows, matrix, y, y_stride);
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
