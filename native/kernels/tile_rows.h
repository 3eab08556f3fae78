#pragma once
// What the tile kernels of every instruction set do with rows. Everything has internal linkage (simd_avx512.h).
#include "kernels/simd_avx512.h"
#include "kernels/tile.h"

namespace {

inline carillon::kernels::TileInput from_row(carillon::kernels::TileInput input, int64_t row) {
  input.data += row * input.row_stride;
  return input;
}

inline carillon::kernels::TileEpilogue from_row(carillon::kernels::TileEpilogue epilogue, int64_t row) {
  if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride;
  if (epilogue.out) epilogue.out += row * epilogue.out_stride;
  if (epilogue.out_float) epilogue.out_float += row * epilogue.out_float_stride;
  if (epilogue.snake_out) epilogue.snake_out += row * epilogue.snake_stride;
  return epilogue;
}

/// `sums(m, half)`: those of row m, outputs 16 half .. 16 half + 15.
template <typename Sums>
inline void finish(int rows, int outputs, const carillon::kernels::TileEpilogue& epilogue, const Sums& sums) {
  for (int half = 0; half < 2; ++half) {
    const int column = half * 16;
    const Mask mask = first_lanes(outputs - column);
    if (!mask) return;
    const auto channel = [&](const float* p) {
      return p ? _mm512_maskz_loadu_ps(mask, p + column) : _mm512_setzero_ps();
    };
    const __m512 bias = channel(epilogue.bias);
    const __m512 frequency = channel(epilogue.snake_frequency);
    const __m512 gain = channel(epilogue.snake_gain);
    for (int m = 0; m < rows; ++m) {
      __m512 y = _mm512_add_ps(sums(m, half), bias);
      if (epilogue.residual) {
        y = _mm512_add_ps(y, load(epilogue.residual + m * epilogue.residual_stride + column, mask));
      }
      if (epilogue.out) store(epilogue.out + m * epilogue.out_stride + column, mask, y);
      if (epilogue.out_float) {
        _mm512_mask_storeu_ps(epilogue.out_float + m * epilogue.out_float_stride + column, mask, y);
      }
      if (epilogue.snake_out) {
        store(epilogue.snake_out + m * epilogue.snake_stride + column, mask, snake(y, frequency, gain));
      }
    }
  }
}

}  // namespace
