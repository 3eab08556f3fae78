#include "kernels/simd_float.h"

namespace carillon::kernels {
namespace {

/// Rounds |x| < 2^22 to the nearest integer: floats near kWhole = 1.5 * 2^23 have no fraction bits.
inline Vector round(Vector x) {
  constexpr float kWhole = 12582912.0f;
  return (x + kWhole) - kWhole;
}

/// Returns x + sin(frequency * x)^2 * gain. The absolute error of the sine is below 2e-7.
/// Reduces frequency * x to pi * n + a with |a| <= pi / 2. Then sin(a) = a + a^3 * p(a^2), where the polynomial p is
/// fitted for the smallest relative error.
inline Vector snake(Vector x, Vector frequency, Vector gain) {
  const Vector phase = x * frequency;
  const Vector whole = round(phase * 0.31830988618f);
  // Subtracts pi in three parts: one float for pi would lose the low bits of the difference.
  const Vector a = ((phase - whole * 3.140625f) - whole * 9.67502593994140625e-4f) - whole * 1.509957990978376432e-7f;
  const Vector q = a * a;
  const Vector p = ((2.6089039693e-06f * q - 1.9811101083e-04f) * q + 8.3330878979e-03f) * q - 1.6666659713e-01f;
  const Vector sine = a + a * q * p;
  return x + sine * sine * gain;
}

/// kRows * 2 accumulators stay in registers over the whole depth. Two more registers hold vectors of the panel.
template <int kRows>
inline void accumulate(const FloatTileInput& input, const float* panel, Vector (&acc)[kFloatRows][2]) {
  Vector sum[kRows][2] = {};
  for (int64_t tap = 0; tap < input.taps; ++tap) {
    const float* const row = input.data + tap * input.tap_stride;
    for (int64_t k = 0; k < input.words; ++k) {
      const Vector b0 = load(panel), b1 = load(panel + kLanes);
      panel += kFloatPanel;
#pragma GCC unroll 6
      for (int m = 0; m < kRows; ++m) {
        const Vector a = all(row[m * input.row_stride + k]);
        sum[m][0] += a * b0;
        sum[m][1] += a * b1;
      }
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < kRows; ++m) acc[m][0] = sum[m][0], acc[m][1] = sum[m][1];
}

template <int kRows = kFloatRows>
void accumulate_rows(const FloatTileInput& input, int rows, const float* panel, Vector (&acc)[kFloatRows][2]) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return accumulate_rows<kRows - 1>(input, rows, panel, acc);
  }
  accumulate<kRows>(input, panel, acc);
}

/// A vector; only its first `count` elements are read or written.
struct Columns {
  int count;

  Vector read(const float* p) const {
    if (p == nullptr) return Vector{};
    if (count >= kLanes) return load(p);
    Vector v{};
    for (int i = 0; i < count; ++i) v[i] = p[i];
    return v;
  }
  void write(float* p, Vector v) const {
    if (count >= kLanes) return store(p, v);
    for (int i = 0; i < count; ++i) p[i] = v[i];
  }
};

void finish(const Vector (&acc)[kFloatRows][2], int rows, int outputs, const FloatTileEpilogue& end) {
  for (int half = 0; half < 2; ++half) {
    const int first = half * kLanes;
    if (outputs <= first) return;
    const Columns columns{outputs - first};
    const auto channels = [&](const float* p) { return columns.read(p == nullptr ? p : p + first); };
    const Vector bias = channels(end.bias), frequency = channels(end.snake_frequency), gain = channels(end.snake_gain);
    for (int m = 0; m < rows; ++m) {
      Vector y = acc[m][half] + bias;
      if (end.residual != nullptr) y += columns.read(end.residual + m * end.residual_stride + first);
      if (end.out != nullptr) columns.write(end.out + m * end.out_stride + first, y);
      if (end.out_float != nullptr) columns.write(end.out_float + m * end.out_float_stride + first, y);
      if (end.snake_out != nullptr) {
        columns.write(end.snake_out + m * end.snake_stride + first, snake(y, frequency, gain));
      }
    }
  }
}

}  // namespace

void tiles_float(const FloatTileInput& input, int64_t rows, const float* panel, int outputs,
                 const FloatTileEpilogue& epilogue) {
  for (int64_t row = 0; row < rows; row += kFloatRows) {
    const int count = static_cast<int>(rows - row < kFloatRows ? rows - row : kFloatRows);
    Vector acc[kFloatRows][2];
    accumulate_rows(input.from(row), count, panel, acc);
    finish(acc, count, outputs, epilogue.from(row, 0));
  }
}

}  // namespace carillon::kernels
