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

/// Fetches what a stream reads next into the L2 cache: hardware prefetching stops at the end of a page. Into L1, the
/// fetches would wait for one another.
inline void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }
inline void prefetch_ahead(const void* p) {
  constexpr int64_t kAheadBytes = 16384;
  prefetch(static_cast<const char*>(p) + kAheadBytes);
}

template <int kRows, typename Use>
[[gnu::always_inline]] inline void with_row_count(int rows, const Use& use) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return with_row_count<kRows - 1>(rows, use);
  }
  use.template operator()<kRows>();
}

/// Calls tile<row count, output count>(first row, first output) for tiles of up to kRows rows and kOutputs outputs.
/// Outputs are in the outer loop, so that a matrix is read from memory once.
template <int kRows, int kOutputs, typename Tile>
[[gnu::always_inline]] inline void for_each_tile(int rows, int64_t outputs, const Tile& tile) {
  for (int64_t output = 0; output < outputs; output += output + kOutputs <= outputs ? kOutputs : 1) {
    for (int row = 0; row < rows; row += kRows) {
      with_row_count<kRows>(rows - row, [&]<int kCount>() {
        if (output + kOutputs <= outputs) {
          tile.template operator()<kCount, kOutputs>(row, output);
        } else {
          tile.template operator()<kCount, 1>(row, output);
        }
      });
    }
  }
}

}  // namespace
