// Inner loops of convolutions and linear layers on plain pointers. A file that is compiled for one instruction set must
// not include other headers with inline functions: the linker might use the file's copy of such a function everywhere,
// even on machines without that instruction set. For the same reason the functions of this header are always inlined.
#pragma once
#include <cstdint>

namespace carillon::kernels {

/// Number of outputs of a panel of bfloat16 words, and of a panel of float32.
inline constexpr int kPanel = 32, kFloatPanel = 16;

/// Left operand of a product. Tap t of row r is `words` words at `data + r * row_stride + t * tap_stride`.
/// A word is a pair of bfloat16, or one float32. A linear layer has one tap. A convolution over [time, channel] has one
/// tap per kernel position.
template <typename Word>
struct BasicTileInput {
  const Word* data;
  int64_t row_stride;
  int64_t tap_stride;
  int64_t taps;
  int64_t words;

  [[gnu::always_inline]] BasicTileInput from(int64_t row) const {
    return {data + row * row_stride, row_stride, tap_stride, taps, words};
  }
};
using TileInput = BasicTileInput<uint32_t>;
using FloatTileInput = BasicTileInput<float>;

/// How many neighbouring numbers of a row share a scale (matrix.h).
inline constexpr int64_t kCodeBlock = 32;

/// Left operand in 16-bit integers: each kCodeBlock numbers have a scale. Offsets, strides and words are whole blocks.
struct FixedTileInput {
  TileInput numbers;
  const float* scales;

  [[gnu::always_inline]] FixedTileInput from(int64_t row) const {
    return {numbers.from(row), scales + row * numbers.row_stride * 2 / kCodeBlock};
  }
};
/// The largest of these integers: kCodeBlock products of two of them add up to less than 2^31.
inline constexpr int kLargestFixed = 8191;

/// Type in which a layer keeps its result beside the snake of it.
template <typename Element>
struct PlainElement {
  using Type = Element;
};
template <>
struct PlainElement<int16_t> {
  using Type = float;
};

/// Epilogue of a row in float32: y = sum + bias + residual. Stores y in `out` and `out_float`, and snake(y) in
/// `snake_out`. Null pointers are skipped. Strides are in elements. uint16_t holds the bits of a bfloat16. Integers
/// have scales: y = sum * weight_scales + bias + residual, and those of the snake's blocks, whose rows are whole panels.
template <typename Element>
struct BasicTileEpilogue {
  using Plain = typename PlainElement<Element>::Type;
  const float* weight_scales = nullptr;
  const float* bias = nullptr;
  const Plain* residual = nullptr;
  int64_t residual_stride = 0;
  Plain* out = nullptr;
  int64_t out_stride = 0;
  float* out_float = nullptr;
  int64_t out_float_stride = 0;
  const float* snake_frequency = nullptr;  // exp(alpha)
  const float* snake_gain = nullptr;       // 1 / (exp(beta) + 1e-9)
  Element* snake_out = nullptr;
  int64_t snake_stride = 0;
  float* snake_scales = nullptr;

  /// Returns the epilogue that begins at `row` and `output`.
  [[gnu::always_inline]] BasicTileEpilogue from(int64_t row, int64_t output) const {
    BasicTileEpilogue moved = *this;
    if (weight_scales) moved.weight_scales += output;
    if (bias) moved.bias += output;
    if (residual) moved.residual += row * residual_stride + output;
    if (out) moved.out += row * out_stride + output;
    if (out_float) moved.out_float += row * out_float_stride + output;
    if (snake_out) {
      moved.snake_frequency += output;
      moved.snake_gain += output;
      moved.snake_out += row * snake_stride + output;
      if (snake_scales) moved.snake_scales += (row * snake_stride + output) / kCodeBlock;
    }
    return moved;
  }
};
using TileEpilogue = BasicTileEpilogue<uint16_t>;
using FloatTileEpilogue = BasicTileEpilogue<float>;
using FixedTileEpilogue = BasicTileEpilogue<int16_t>;

/// Storage type and pointers of a matrix (matrix.h). `depth`, its number of columns, is a multiple of
/// kCodeBlock for codes.
enum class StoredForm { kBfloat16, kInt8, kInt4 };
struct StoredMatrix {
  StoredForm form;
  const void* data;
  const uint16_t* scales;  // bits of float16
  int64_t outputs, depth;

  [[gnu::always_inline]] StoredMatrix rows(int64_t first, int64_t count) const {
    const int64_t bits = form == StoredForm::kBfloat16 ? 16 : form == StoredForm::kInt8 ? 8 : 4;
    const int64_t row_scales = depth / kCodeBlock * (form == StoredForm::kInt4 ? 2 : 1);
    return {form, static_cast<const uint8_t*>(data) + first * depth * bits / 8,
            scales ? scales + first * row_scales : nullptr, count, depth};
  }
};

/// Maximum number of rows of x for one pass over a weight.
inline constexpr int kGemvRows = 8;
/// The largest number of rows of a decoding step: eight songs, each with a conditional and an unconditional row. With
/// at most this many rows, the result of a row does not depend on their number.
inline constexpr int kFewRows = 2 * kGemvRows;

/// Keys or values of one head: rows of `dim` elements, `stride` elements apart. uint16_t holds the bits of a bfloat16.
template <typename Element>
struct HeadRows {
  const Element* data;
  int64_t stride;
};
/// Attention of `count` queries [count, dim] over the same `length` keys:
/// out [count, dim] = softmax(scale * queries * keys^T) * values. dim is a multiple of 32. `scores` is scratch memory for
/// kAttendQueries * length floats. The result of a query does not depend on their number.
inline constexpr int kAttendQueries = 2;
template <typename Element>
using Attend = void(const Element* queries, int count, const HeadRows<Element>& keys, const HeadRows<Element>& values,
                    int64_t length, int64_t dim, float scale, float* scores, Element* out);

#if defined(CARILLON_FLOAT_TILES)
Attend<float> attend_float;

/// Multiplies rows by one float32 panel and stores the first `outputs` outputs.
void tiles_float(const FloatTileInput& input, int64_t rows, const float* panel, int outputs,
                 const FloatTileEpilogue& epilogue);
inline constexpr int kFloatRows = 6;  // as many rows as the registers of AVX2 hold

/// y[r, o] = sum over k of x[r, k] * matrix[o, k], for a bfloat16 matrix. x is [rows, depth] with at most kFewRows rows,
/// in the order of split_pairs_float. The order of summation is fixed.
void gemv_float(const float* x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride);
/// Copies x [rows, depth] to out [depth / 16, rows, 16], and in each 16 numbers puts the even positions before the odd
/// ones, where a shift and a mask take them from the matrix. depth is a multiple of 16. Rows lie beside one another,
/// because rows at the stride of a power of two share a few sets of the cache.
void split_pairs_float(const float* x, int64_t rows, int64_t depth, float* out);

/// Rows of x, rounded to 16 bits: number i of block k is numbers[i] * scales[k]. Blocks lie in pairs: the first half of
/// both, then the second half of both, in the order in which gemv_codes unpacks the codes. A last single block has the
/// place of a pair.
struct RoundedRows {
  int16_t* numbers;  // [rows, pairs of blocks, 2 * kCodeBlock]
  float* scales;     // [rows, blocks]
  float* sums;       // [rows, blocks]: of a block's rounded numbers

  [[gnu::always_inline]] RoundedRows from(int64_t row, int64_t blocks) const {
    return {numbers + row * ((blocks + 1) / 2) * 2 * kCodeBlock, scales + row * blocks, sums + row * blocks};
  }
};
/// Rounds x [rows, depth] for products with a matrix of this form. The error of a number is at most 2^-16 of the
/// largest in its block, far below that of codes of 8 bits. A block with a number that is not finite becomes NaN.
void round_rows(const float* x, int64_t rows, int64_t depth, StoredForm form, const RoundedRows& out);
/// y[r, o] = sum over k of x[r, k] * matrix[o, k], for a matrix of codes. Sums of a block are exact; the order of
/// summation of the blocks is fixed.
using GemvCodes = void(const RoundedRows& x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride);
GemvCodes gemv_codes;

/// Converts the matrix to float32: out [outputs, depth].
void widen_float(const StoredMatrix& matrix, float* out);
/// Writes the outputs `first` .. first + kFloatPanel - 1 of the matrix to a panel [depth][kFloatPanel]. Outputs beyond
/// the end of the matrix are zero.
void pack_panel_float(const StoredMatrix& matrix, int64_t first, float* panel);
#endif

#if defined(CARILLON_AVX512)
/// Multiplies rows by one packed panel and stores the first `outputs` outputs.
template <typename Input, typename Epilogue>
using BasicTiles = void(const Input&, int64_t rows, const uint32_t* panel, int outputs, const Epilogue&);
using Tiles = BasicTiles<TileInput, TileEpilogue>;
Tiles tiles_avx512;
BasicTiles<FixedTileInput, FixedTileEpilogue> tiles_fixed_avx512;
inline constexpr int kAvx512Rows = 14, kFixedRows = 7;  // as many rows as the registers hold

/// Interleaves `outputs` <= kPanel rows of a row-major matrix into a panel [words][kPanel]. The remaining outputs of
/// the panel are zero.
void pack_panel_avx512(const uint32_t* weight, int64_t row_stride, int outputs, int64_t words, uint32_t* panel);

/// y[r, o] = bias[o] + sum over k of x[r, k] * weight[o, k]. x is [rows, depth] with at most kGemvRows rows; weight is
/// [outputs, depth]. x, weight and y are bfloat16, and the sums are float32. bias may be null.
void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride);

/// Like gemv_codes, with other rounding of the sums.
GemvCodes gemv_codes_avx512;
/// Converts rows first .. first + count - 1 of a matrix of codes to bfloat16: out [count, depth].
void decode_rows_avx512(const StoredMatrix& matrix, int64_t first, int64_t count, uint16_t* out);

Attend<uint16_t> attend_avx512;

/// Snake activation of one row: y = x + gain * sin(frequency * x)^2. An Element is a float, or the bits of a bfloat16.
template <typename Element>
void snake_row_avx512(const Element* x, float frequency, float gain, Element* y, int64_t length);

/// Gradients of frequency and gain, summed over a row.
struct SnakeGradients {
  float frequency, gain;
};
/// Writes the gradients dx = dy * (1 + gain * frequency * sin(2 * frequency * x)) of one row.
template <typename Element>
SnakeGradients snake_row_backward_avx512(const Element* x, const Element* dy, float frequency, float gain, Element* dx,
                                         int64_t length);
#endif

#if defined(CARILLON_AMX)
/// Like tiles_avx512, but with AMX tiles. The number of words in a tap must be a multiple of kAmxWords.
Tiles tiles_amx;
inline constexpr int kAmxRows = 32, kAmxWords = 16;
#endif

}  // namespace carillon::kernels
