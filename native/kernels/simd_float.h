#pragma once
// Vector functions of attend_float.cpp, tile_float.cpp, rows_float.cpp and rows_codes.cpp, in GCC's vector extensions.
// On x86-64 these files are compiled for AVX2 with FMA and F16C. NEON registers are half as wide, so the compiler splits each vector
// into two. All functions have internal linkage, see simd_avx512.h.
#include <cstdint>
#include <cstring>

#include "kernels/vector_kernels.h"

namespace {

constexpr int kLanes = 8;
using Vector = float __attribute__((vector_size(4 * kLanes)));
using Unaligned = float __attribute__((vector_size(4 * kLanes), aligned(4)));
using Words = uint32_t __attribute__((vector_size(4 * kLanes)));
using Integers = int32_t __attribute__((vector_size(4 * kLanes)));
using Shorts = uint16_t __attribute__((vector_size(2 * kLanes)));
#if defined(__aarch64__)
using Half = __fp16;
#else
using Half = _Float16;
#endif

template <typename T>
inline T read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline Vector load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Unaligned*>(p) = v; }
inline Vector all(float value) { return value - Vector{}; }
inline float widen(uint16_t half) { return static_cast<float>(read<Half>(&half)); }

inline float sum(Vector v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/// Hardware prefetching stops at the end of a page, so the data two pages ahead is prefetched here.
inline void prefetch_ahead(const void* p) {
  constexpr int64_t kAheadBytes = 8192;
  __builtin_prefetch(static_cast<const char*>(p) + kAheadBytes);
}

/// Calls tile<row count, output count>(first row, first output) for tiles of up to four rows and kOutputs outputs.
/// Outputs are in the outer loop, so that a matrix is read from memory once.
template <int kOutputs, typename Tile>
[[gnu::always_inline]] inline void for_each_tile(int rows, int64_t outputs, const Tile& tile) {
  for (int64_t output = 0; output < outputs; output += output + kOutputs <= outputs ? kOutputs : 1) {
    const auto of_rows = [&]<int kCount>() {
      for (int row = 0; row < rows; row += 4) {
        if (rows - row >= 4) tile.template operator()<4, kCount>(row, output);
        if (rows - row == 3) tile.template operator()<3, kCount>(row, output);
        if (rows - row == 2) tile.template operator()<2, kCount>(row, output);
        if (rows - row == 1) tile.template operator()<1, kCount>(row, output);
      }
    };
    output + kOutputs <= outputs ? of_rows.template operator()<kOutputs>() : of_rows.template operator()<1>();
  }
}

}  // namespace
