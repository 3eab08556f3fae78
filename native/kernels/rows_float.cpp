// On x86-64 this file is compiled for AVX2 with FMA and F16C. It uses GCC's vector extensions.
#include <cstring>

#include "kernels/vector_kernels.h"

namespace carillon::kernels {
namespace {

constexpr int kLanes = 8, kVectors = kCodeBlock / kLanes;
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

inline Vector all(float value) { return value - Vector{}; }
inline float widen(uint16_t half) { return static_cast<float>(read<Half>(&half)); }

/// Hardware prefetching stops at the end of a page, so the data two pages ahead is prefetched here.
inline void prefetch_ahead(const void* p) {
  constexpr int64_t kAheadBytes = 8192;
  __builtin_prefetch(static_cast<const char*>(p) + kAheadBytes);
}

// Each struct below reads a matrix row of one storage type. `block(k, w)` loads block k of kCodeBlock numbers into w.
// gemv_float uses the reader that `InGemv` names.

/// Reads 16 numbers in the order of split_pairs_float: first the even positions, then the odd positions. This takes
/// half as many instructions as reading them one after another.
struct Bfloat16Pairs {
  const uint16_t* data;

  Bfloat16Pairs(const StoredMatrix& matrix, int64_t row)
      : data(static_cast<const uint16_t*>(matrix.data) + row * matrix.depth) {}
  [[gnu::always_inline]] void block(int64_t k, Vector (&w)[kVectors]) const {
    prefetch_ahead(data + k * kCodeBlock);
    for (int i = 0; i < kVectors; i += 2) {
      const auto pairs = read<Words>(data + k * kCodeBlock + i * kLanes);
      w[i] = (Vector)(pairs << 16);
      w[i + 1] = (Vector)(pairs & 0xffff0000u);
    }
  }
};

struct Bfloat16Row {
  using InGemv = Bfloat16Pairs;
  const uint16_t* data;

  Bfloat16Row(const StoredMatrix& matrix, int64_t row)
      : data(static_cast<const uint16_t*>(matrix.data) + row * matrix.depth) {}
  [[gnu::always_inline]] void block(int64_t k, Vector (&w)[kVectors]) const {
    prefetch_ahead(data + k * kCodeBlock);
    for (int i = 0; i < kVectors; ++i) {
      const auto bits = __builtin_convertvector(read<Shorts>(data + k * kCodeBlock + i * kLanes), Words);
      w[i] = (Vector)(bits << 16);
    }
  }
};

struct Int8Row {
  using InGemv = Int8Row;
  const int8_t* data;
  const uint16_t* scales;

  Int8Row(const StoredMatrix& matrix, int64_t row)
      : data(static_cast<const int8_t*>(matrix.data) + row * matrix.depth),
        scales(matrix.scales + row * (matrix.depth / kCodeBlock)) {}
  [[gnu::always_inline]] void block(int64_t k, Vector (&w)[kVectors]) const {
    const Vector scale = all(widen(scales[k]));
    const auto fours = read<Words>(data + k * kCodeBlock);
    prefetch_ahead(data + k * kCodeBlock);
    for (int i = 0; i < kVectors; ++i) {
      const Integers codes = (Integers)(fours << (24 - 8 * i)) >> 24;
      w[i] = __builtin_convertvector(codes, Vector) * scale;
    }
  }
};

struct Int4Row {
  using InGemv = Int4Row;
  const uint8_t* data;
  const uint16_t* scales;

  Int4Row(const StoredMatrix& matrix, int64_t row)
      : data(static_cast<const uint8_t*>(matrix.data) + row * matrix.depth / 2),
        scales(matrix.scales + row * (matrix.depth / kCodeBlock) * 2) {}
  [[gnu::always_inline]] void block(int64_t k, Vector (&w)[kVectors]) const {
    const Vector scale = all(widen(scales[2 * k])), lowest = all(widen(scales[2 * k + 1]));
    const auto fours = __builtin_convertvector(read<Shorts>(data + k * kCodeBlock / 2), Words);
    prefetch_ahead(data + k * kCodeBlock / 2);
    for (int i = 0; i < kVectors; ++i) {
      const auto codes = (Integers)((fours >> 4 * i) & 15);
      w[i] = __builtin_convertvector(codes, Vector) * scale + lowest;
    }
  }
};

inline float sum(Vector v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/// Multiplies kOutputs rows of the matrix by kRows rows of x. The results are the same for any kOutputs and kRows.
template <typename Row, int kRows, int kOutputs>
inline void multiply(const float* x, const StoredMatrix& matrix, int64_t output, float* y, int64_t y_stride) {
  Vector acc[kRows][kOutputs] = {};
  for (int64_t k = 0; k < matrix.depth / kCodeBlock; ++k) {
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      Vector w[kVectors];
      Row(matrix, output + o).block(k, w);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const float* const row = x + r * matrix.depth + k * kCodeBlock;
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) {
          acc[r][o] += *reinterpret_cast<const Unaligned*>(row + i * kLanes) * w[i];
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) y[r * y_stride + output + o] = sum(acc[r][o]);
  }
}

/// Reads the matrix from memory once, for any number of rows.
template <typename Row, int kOutputs>
void some_outputs(const float* x, int rows, const StoredMatrix& matrix, int64_t output, float* y, int64_t y_stride) {
  for (; rows >= 4; rows -= 4, x += 4 * matrix.depth, y += 4 * y_stride) {
    multiply<Row, 4, kOutputs>(x, matrix, output, y, y_stride);
  }
  if (rows == 3) multiply<Row, 3, kOutputs>(x, matrix, output, y, y_stride);
  if (rows == 2) multiply<Row, 2, kOutputs>(x, matrix, output, y, y_stride);
  if (rows == 1) multiply<Row, 1, kOutputs>(x, matrix, output, y, y_stride);
}

template <typename Row, int kOutputs>
void all_outputs(const float* x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  int64_t output = 0;
  for (; output + kOutputs <= matrix.outputs; output += kOutputs) {
    some_outputs<Row, kOutputs>(x, rows, matrix, output, y, y_stride);
  }
  for (; output < matrix.outputs; ++output) some_outputs<Row, 1>(x, rows, matrix, output, y, y_stride);
}

template <typename Row>
void widen_rows(const StoredMatrix& matrix, float* out) {
  for (int64_t row = 0; row < matrix.outputs; ++row) {
    for (int64_t k = 0; k < matrix.depth / kCodeBlock; ++k, out += kCodeBlock) {
      Vector w[kVectors];
      Row(matrix, row).block(k, w);
      for (int i = 0; i < kVectors; ++i) *reinterpret_cast<Unaligned*>(out + i * kLanes) = w[i];
    }
  }
}

/// Transposes eight vectors: swaps halves, then quarters, then neighbours.
inline void transpose(Vector (&v)[kLanes]) {
  for (int i = 0; i < 4; ++i) {
    const Vector a = v[i], b = v[i + 4];
    v[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < kLanes; i += i % 2 == 0 ? 1 : 3) {
    const Vector a = v[i], b = v[i + 2];
    v[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    v[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < kLanes; i += 2) {
    const Vector a = v[i], b = v[i + 1];
    v[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    v[i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
}

/// Packs outputs first .. first + kLanes - 1 into half of a panel.
template <typename Row>
void pack_lanes(const StoredMatrix& matrix, int64_t first, float* panel) {
  for (int64_t k = 0; k < matrix.depth / kCodeBlock; ++k) {
    Vector block[kLanes][kVectors] = {};
    for (int lane = 0; lane < kLanes && first + lane < matrix.outputs; ++lane) {
      Row(matrix, first + lane).block(k, block[lane]);
    }
    for (int i = 0; i < kVectors; ++i) {
      Vector v[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) v[lane] = block[lane][i];
      transpose(v);
      for (int j = 0; j < kLanes; ++j, panel += kFloatPanel) *reinterpret_cast<Unaligned*>(panel) = v[j];
    }
  }
}

/// Calls `use` with a null pointer. The type of the pointer is the row reader for the storage type.
template <typename Use>
void with_form(StoredForm form, const Use& use) {
  switch (form) {
    case StoredForm::kBfloat16:
      return use(static_cast<Bfloat16Row*>(nullptr));
    case StoredForm::kInt8:
      return use(static_cast<Int8Row*>(nullptr));
    case StoredForm::kInt4:
      return use(static_cast<Int4Row*>(nullptr));
  }
}

}  // namespace

void gemv_float(const float* x, int rows, const StoredMatrix& matrix, float* y, int64_t y_stride) {
  // Computes four or three outputs at a time, so that all accumulators fit into registers.
  with_form(matrix.form, [&]<typename Row>(Row*) {
    using Reader = typename Row::InGemv;
    rows <= 2 ? all_outputs<Reader, 4>(x, rows, matrix, y, y_stride)
              : all_outputs<Reader, 3>(x, rows, matrix, y, y_stride);
  });
}

void split_pairs_float(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    const auto a = read<Vector>(x + i), b = read<Vector>(x + i + kLanes);
    *reinterpret_cast<Unaligned*>(out + i) = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *reinterpret_cast<Unaligned*>(out + i + kLanes) = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  }
}

void widen_float(const StoredMatrix& matrix, float* out) {
  with_form(matrix.form, [&]<typename Row>(Row*) { widen_rows<Row>(matrix, out); });
}

void pack_panel_float(const StoredMatrix& matrix, int64_t first, float* panel) {
  with_form(matrix.form, [&]<typename Row>(Row*) {
    for (int half = 0; half < kFloatPanel; half += kLanes) pack_lanes<Row>(matrix, first + half, panel + half);
  });
}

}  // namespace carillon::kernels
