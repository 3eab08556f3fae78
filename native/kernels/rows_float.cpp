#include "kernels/simd_float.h"

namespace carillon::kernels {
namespace {

constexpr int kVectors = kCodeBlock / kLanes;

// Each struct below reads a matrix row of one storage type. `block(k, w)` loads block k of kCodeBlock numbers into w.

struct Bfloat16Row {
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

/// Sums of one row of x and kGroup rows of the matrix, each in kLanes parts.
constexpr int kGroup = 24, kPairs = 2 * kLanes;
using GroupSums = Vector[kGroup];

/// Multiplies kRows rows of x by kOutputs rows of a bfloat16 matrix in the columns begin .. end - 1, and adds to the sums.
/// x is in the order of split_pairs_float, and its next columns are x_stride numbers away. The results are the same for
/// any kOutputs, kRows and division into columns.
template <int kRows, int kOutputs>
inline void add_products(const float* x, int64_t x_stride, const StoredMatrix& matrix, int64_t output, int64_t begin,
                         int64_t end, GroupSums* sums) {
  const auto* const weight = static_cast<const uint16_t*>(matrix.data) + output * matrix.depth;
  Vector acc[kRows][kOutputs];
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) acc[r][o] = sums[r][output + o];
  }
  x += begin / kPairs * x_stride;
  for (int64_t k = begin; k < end; k += kPairs, x += x_stride) {
    Words pairs[kOutputs];
#pragma GCC unroll 4
    for (int o = 0; o < kOutputs; ++o) {
      prefetch(weight + (kGroup + o) * matrix.depth + k);
      pairs[o] = read<Words>(weight + o * matrix.depth + k);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vector even = load(x + r * kPairs);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) acc[r][o] += even * (Vector)(pairs[o] << 16);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vector odd = load(x + r * kPairs + kLanes);
#pragma GCC unroll 4
      for (int o = 0; o < kOutputs; ++o) acc[r][o] += odd * (Vector)(pairs[o] & 0xffff0000u);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) sums[r][output + o] = acc[r][o];
  }
}

template <typename Row>
void widen_rows(const StoredMatrix& matrix, float* out) {
  for (int64_t row = 0; row < matrix.outputs; ++row) {
    for (int64_t k = 0; k < matrix.depth / kCodeBlock; ++k, out += kCodeBlock) {
      Vector w[kVectors];
      Row(matrix, row).block(k, w);
      for (int i = 0; i < kVectors; ++i) store(out + i * kLanes, w[i]);
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
      for (int j = 0; j < kLanes; ++j, panel += kFloatPanel) store(panel, v[j]);
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
  // Several rows of x exceed the L1 cache. So a group of outputs takes a part of the columns after the other.
  constexpr int64_t kCachedNumbers = 4096;
  const int64_t part = kCachedNumbers / rows / kPairs * kPairs;
  for (int64_t first = 0; first < matrix.outputs; first += kGroup) {
    const int64_t count = matrix.outputs - first < kGroup ? matrix.outputs - first : kGroup;
    const StoredMatrix group = matrix.rows(first, count);
    GroupSums sums[kFewRows];
    std::memset(sums, 0, static_cast<size_t>(rows) * sizeof(GroupSums));
    for (int64_t begin = 0, end; begin < matrix.depth; begin = end) {
      end = matrix.depth - begin < part ? matrix.depth : begin + part;
      const auto tile = [&]<int kRows, int kOutputs>(int row, int64_t output) {
        add_products<kRows, kOutputs>(x + row * kPairs, rows * kPairs, group, output, begin, end, sums + row);
      };
      // All accumulators of a tile fit into registers, with the operands and a mask.
      rows <= 2 ? for_each_tile<2, 4>(rows, count, tile) : for_each_tile<3, 3>(rows, count, tile);
    }
    for (int r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < count; ++o) y[r * y_stride + first + o] = sum(sums[r][o]);
    }
  }
}

void split_pairs_float(const float* x, int64_t rows, int64_t depth, float* out) {
  for (int64_t k = 0; k < depth; k += kPairs) {
    for (int64_t r = 0; r < rows; ++r, out += kPairs) {
      const auto a = read<Vector>(x + r * depth + k), b = read<Vector>(x + r * depth + k + kLanes);
      store(out, __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
      store(out + kLanes, __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
    }
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
