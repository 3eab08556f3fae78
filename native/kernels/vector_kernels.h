// The inner loop that convolutions and linear layers share, in plain pointers: the files compiled
// for one instruction set include nothing whose inline functions other files could pick up.
#pragma once
#include <cstdint>

namespace carillon::kernels {

/// A panel holds kPanel outputs. Depth is counted in words: pairs of bfloat16.
inline constexpr int kPanel = 32;

/// Left operand: row r, tap t is `words` words at `data + r * row_stride + t * tap_stride` (strides in words).
/// A convolution over [time, channel] has a tap per kernel position, a linear layer one.
struct TileInput {
  const uint32_t* data;
  int64_t row_stride;
  int64_t tap_stride;
  int64_t taps;
  int64_t words;
};

/// What happens to a finished row, in float32: y = sum + bias + residual; y goes to `out` and to `out_float`,
/// snake(y) to `snake_out`. Null pointers are left out. Strides are in elements; uint16_t is bfloat16.
struct TileEpilogue {
  const float* bias = nullptr;
  const uint16_t* residual = nullptr;
  int64_t residual_stride = 0;
  uint16_t* out = nullptr;
  int64_t out_stride = 0;
  float* out_float = nullptr;
  int64_t out_float_stride = 0;
  const float* snake_frequency = nullptr;  // exp(alpha)
  const float* snake_gain = nullptr;       // 1 / (exp(beta) + 1e-9)
  uint16_t* snake_out = nullptr;
  int64_t snake_stride = 0;
};

#if defined(CARILLON_AVX512)
/// Rows times one packed panel, of which `outputs` are stored.
using Tiles = void(const TileInput&, int64_t rows, const uint32_t* panel, int outputs, const TileEpilogue&);
Tiles tiles_avx512;
inline constexpr int kAvx512Rows = 14;  // as many as the registers hold

/// Interleaves `outputs` <= kPanel rows of a row-major matrix into a panel [words][kPanel];
/// missing outputs become zero.
void pack_panel_avx512(const uint32_t* weight, int64_t row_stride, int outputs, int64_t words, uint32_t* panel);
#endif

#if defined(CARILLON_AMX)
/// The same by matrix tiles, where the words of a tap are a multiple of kAmxWords.
Tiles tiles_amx;
inline constexpr int kAmxRows = 32, kAmxWords = 16;
#endif

/// The most rows of x that one pass over a weight serves.
inline constexpr int kGemvRows = 8;

#if defined(CARILLON_AVX512)
/// y[r, o] = sum over k of x[r, k] weight[o, k] + bias[o], for `rows` <= kGemvRows rows of x [rows, depth] and
/// `outputs` rows of weight [outputs, depth]. All bfloat16 but the bias; sums in float32. bias may be null.
void gemv_avx512(const uint16_t* x, int rows, const uint16_t* weight, int64_t outputs, int64_t depth, const float* bias,
                 uint16_t* y, int64_t y_stride);
#endif

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

#if defined(CARILLON_AVX512)
/// y = x + sin(frequency x)^2 gain of one row. Element: float, or uint16_t for the bits of bfloat16.
template <typename Element>
void snake_row_avx512(const Element* x, float frequency, float gain, Element* y, int64_t length);

/// The gradient of one row: dx = dy (1 + gain frequency sin(2 frequency x)); the sums are those of the two constants.
struct SnakeRowSums {
  float frequency, gain;
};
template <typename Element>
SnakeRowSums snake_row_backward_avx512(const Element* x, const Element* dy, float frequency, float gain, Element* dx,
                                       int64_t length);
#endif

}  // namespace carillon::kernels
