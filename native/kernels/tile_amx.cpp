#include "kernels/simd_avx512.h"

namespace carillon::kernels {
namespace {

constexpr int kRows = 16, kColumns = 16;  // size of a float32 tile; sums use two by two tiles
static_assert(kAmxRows == 2 * kRows && kPanel == 2 * kColumns);
constexpr int kLineBytes = 64;

/// The tile configuration that `_tile_loadconfig` reads.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// Configures the tiles. Tiles 0 to 3 hold the sums: upper left, upper right, lower left and lower right. Tiles 4 and 5
/// hold the upper and the lower rows of the input. Tiles 6 and 7 hold a panel of the matrix.
void configure(int upper, int lower) {
  const int rows[] = {upper, upper, lower, lower, upper, lower, kAmxWords, kAmxWords};
  Configuration wanted;
  for (int tile = 0; tile < 8; ++tile) {
    wanted.row_bytes[tile] = kLineBytes;
    wanted.rows[tile] = static_cast<uint8_t>(rows[tile]);
  }
  // GCC declares that _tile_loadconfig reads only eight bytes of `wanted`, although the instruction reads all of them.
  // Without this barrier the compiler may drop the stores to the other bytes.
  __asm__ volatile("" ::"r"(&wanted) : "memory");
  _tile_loadconfig(&wanted);
}

struct alignas(64) Sums {
  float values[kAmxRows][kPanel];
};

/// Computes the sums for up to 32 rows of input. configure() has set the number of rows.
template <bool kLower>
void accumulate(const TileInput& input, const uint32_t* panel, Sums& sums) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const auto stride = static_cast<size_t>(input.row_stride) * sizeof(uint32_t);
  for (int64_t tap = 0; tap < input.taps; ++tap) {
    const uint32_t* row = input.data + tap * input.tap_stride;
    for (int64_t word = 0; word < input.words; word += kAmxWords, panel += kAmxWords * kPanel) {
      _tile_loadd(6, panel, kPanel * sizeof(uint32_t));
      _tile_loadd(7, panel + kColumns, kPanel * sizeof(uint32_t));
      _tile_loadd(4, row + word, stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if (kLower) {
        _tile_loadd(5, row + kRows * input.row_stride + word, stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  constexpr size_t kSumStride = kPanel * sizeof(float);
  _tile_stored(0, &sums.values[0][0], kSumStride);
  _tile_stored(1, &sums.values[0][kColumns], kSumStride);
  if (kLower) {
    _tile_stored(2, &sums.values[kRows][0], kSumStride);
    _tile_stored(3, &sums.values[kRows][kColumns], kSumStride);
  }
}

}  // namespace

void tiles_amx(const TileInput& input, int64_t rows, const uint32_t* panel, int outputs, const TileEpilogue& epilogue) {
  int configured = 0;
  for (int64_t row = 0; row < rows; row += kAmxRows) {
    const int count = static_cast<int>(rows - row < kAmxRows ? rows - row : kAmxRows);
    const bool has_lower = count > kRows;
    if (count != configured) configure(has_lower ? kRows : count, has_lower ? count - kRows : 1);
    configured = count;
    Sums sums;
    (has_lower ? accumulate<true> : accumulate<false>)(input.from(row), panel, sums);
    finish_tile(count, outputs, epilogue.from(row, 0),
                [&](int m, int half) { return _mm512_load_ps(&sums.values[m][half * kColumns]); });
  }
  _tile_release();  // later users of this thread configure their own tiles
}

}  // namespace carillon::kernels
