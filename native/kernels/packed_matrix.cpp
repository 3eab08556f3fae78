#include "kernels/packed_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/cpu.h"

namespace carillon::kernels {

#if defined(CARILLON_AVX512)
namespace {

constexpr int64_t kInputBlockBytes = 384 << 10;  // fits a 1 MiB L2 cache together with a panel

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename Input, typename Epilogue>
struct Kernel {
  BasicTiles<Input, Epilogue>* tiles;
  int64_t strip_rows;  // rows of a tile
};

/// The fastest kernel that this processor supports for an input.
Kernel<TileInput, TileEpilogue> kernel_for([[maybe_unused]] const TileInput& input) {
#if defined(CARILLON_AMX)
  if (has_amx() && input.words % kAmxWords == 0) return {tiles_amx, kAmxRows};
#endif
  return {tiles_avx512, kAvx512Rows};
}
Kernel<FixedTileInput, FixedTileEpilogue> kernel_for(const FixedTileInput&) { return {tiles_fixed_avx512, kFixedRows}; }

/// Computes a matrix product panel by panel. rows() multiplies `count` input rows, starting at `row`, by one panel of
/// the weight. `output` is the index of the panel's first output.
template <typename Input, typename Epilogue>
struct Matmul {
  Input input;
  Epilogue epilogue;
  int64_t outputs;
  Kernel<Input, Epilogue> kernel = kernel_for(input);

  void rows(int64_t row, int64_t count, const uint32_t* panel, int64_t output) const {
    kernel.tiles(input.from(row), count, panel, static_cast<int>(std::min<int64_t>(kPanel, outputs - output)),
                 epilogue.from(row, output));
  }
};

/// Copies x if its rows are a multiple of 1 KiB apart: such rows would map to few sets of the L1 cache and evict each
/// other.
at::Tensor spread_rows(const at::Tensor& x) {
  constexpr int64_t kAliasElements = 512, kLineElements = 32;
  const int64_t depth = x.size(1);
  if (depth % kAliasElements != 0) return x;
  const at::Tensor spread = at::empty({x.size(0), depth + kLineElements}, x.options()).narrow(1, 0, depth);
  return spread.copy_(x);
}

}  // namespace

/// Packs rows [outputs, columns] of numbers of 16 bits.
static PackedMatrix pack_pairs(const at::Tensor& rows, const at::Tensor& scales = {}) {
  const int64_t outputs = rows.size(0), words = rows.size(1) / 2;
  TORCH_CHECK(has_avx512() && 2 * words == rows.size(1), "packing needs AVX512-BF16 and an even depth");
  const int64_t panels = ceil_divide(outputs, kPanel);
  at::Tensor packed = at::empty({panels, words, kPanel}, at::kInt);
  const auto* source = static_cast<const uint32_t*>(rows.const_data_ptr());
  auto* target = static_cast<uint32_t*>(packed.data_ptr());
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int count = static_cast<int>(std::min<int64_t>(kPanel, outputs - p * kPanel));
      pack_panel_avx512(source + p * kPanel * words, words, count, words, target + p * words * kPanel);
    }
  });
  return {packed, outputs, scales};
}

PackedMatrix pack(const at::Tensor& weight) { return pack_pairs(weight.to(at::kBFloat16).contiguous()); }

PackedMatrix pack_fixed(const at::Tensor& weight) {
  const auto [numbers, scales] = round_fixed(weight);
  return pack_pairs(numbers, scales.squeeze(-1).contiguous());
}

template <typename Input, typename Epilogue>
static void multiply_packed(const PackedMatrix& matrix, const Matmul<Input, Epilogue>& job, int64_t rows,
                            int64_t row_bytes) {
  const auto* panels = static_cast<const uint32_t*>(matrix.panels.const_data_ptr());
  const int64_t panel_count = matrix.panels.size(0);
  const int64_t panel_words = matrix.panels.size(1) * kPanel;
  const int64_t strip = job.kernel.strip_rows, strips = ceil_divide(rows, strip);
  const int64_t blocks = ceil_divide(strips, std::clamp<int64_t>(kInputBlockBytes / (strip * row_bytes), 2, 16));
  const int64_t block_rows = ceil_divide(strips, blocks) * strip;
  at::parallel_for(0, blocks * panel_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / panel_count * block_rows;
      const int64_t panel = task % panel_count;
      job.rows(row, std::min(block_rows, rows - row), panels + panel * panel_words, panel * kPanel);
    }
  });
}

void matmul(const PackedMatrix& matrix, const TileInput& input, int64_t rows, const TileEpilogue& epilogue) {
  multiply_packed(matrix, Matmul<TileInput, TileEpilogue>{input, epilogue, matrix.outputs}, rows, 4 * input.row_stride);
}

void matmul(const PackedMatrix& matrix, const FixedTileInput& input, int64_t rows, const FixedTileEpilogue& epilogue) {
  Matmul<FixedTileInput, FixedTileEpilogue> job{input, epilogue, matrix.outputs};
  job.epilogue.weight_scales = matrix.scales.const_data_ptr<float>();
  multiply_packed(matrix, job, rows, 4 * input.numbers.row_stride);
}

static void unpacked_bfloat16(const at::Tensor& x, const StoredMatrix& weight, const at::Tensor& bias,
                              at::Tensor& out) {
  const int64_t rows = x.size(0), outputs = weight.outputs, words = weight.depth / 2;
  const at::Tensor spread = spread_rows(x);
  TileEpilogue epilogue;
  if (bias.defined()) epilogue.bias = bias.const_data_ptr<float>();
  epilogue.out = static_cast<uint16_t*>(out.data_ptr());
  epilogue.out_stride = outputs;
  const TileInput input{static_cast<const uint32_t*>(spread.const_data_ptr()), spread.stride(0) / 2, 0, 1, words};
  const Matmul<TileInput, TileEpilogue> job{input, epilogue, outputs};
  const int64_t strip = job.kernel.strip_rows;
  const bool is_coded = weight.form != StoredForm::kBfloat16;
  // Two panels share each strip of x while it is in the L1 or L2 cache.
  constexpr int64_t kGroup = 2 * kPanel;
  at::parallel_for(0, ceil_divide(outputs, kGroup), 1, [&](int64_t begin, int64_t end) {
    const at::Tensor buffer = at::empty({2, words, kPanel}, at::kInt);
    const at::Tensor decoded = is_coded ? at::empty({kPanel, words}, at::kInt) : at::Tensor();
    auto* panels = static_cast<uint32_t*>(buffer.data_ptr());
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kGroup;
      const int64_t last = std::min(outputs, first + kGroup);
      for (int64_t output = first; output < last; output += kPanel) {
        const int64_t count = std::min<int64_t>(kPanel, last - output);
        const auto* source = static_cast<const uint32_t*>(weight.data) + output * words;
        if (is_coded) {
          decode_rows_avx512(weight, output, count, static_cast<uint16_t*>(decoded.data_ptr()));
          source = static_cast<const uint32_t*>(decoded.const_data_ptr());
        }
        pack_panel_avx512(source, words, static_cast<int>(count), words, panels + (output - first) * words);
      }
      for (int64_t row = 0; row < rows; row += strip) {
        const int64_t count = std::min(strip, rows - row);
        for (int64_t output = first; output < last; output += kPanel) {
          job.rows(row, count, panels + (output - first) * words, output);
        }
      }
    }
  });
}
#else
namespace {
constexpr const char* kNoTiles = "matrices can be packed as bfloat16 only in a build with AVX-512 kernels (x86-64)";
}  // namespace

PackedMatrix pack(const at::Tensor&) { TORCH_CHECK(false, kNoTiles); }
PackedMatrix pack_fixed(const at::Tensor&) { TORCH_CHECK(false, kNoTiles); }
void matmul(const PackedMatrix&, const TileInput&, int64_t, const TileEpilogue&) { TORCH_CHECK(false, kNoTiles); }
void matmul(const PackedMatrix&, const FixedTileInput&, int64_t, const FixedTileEpilogue&) {
  TORCH_CHECK(false, kNoTiles);
}
static void unpacked_bfloat16(const at::Tensor&, const StoredMatrix&, const at::Tensor&, at::Tensor&) {
  TORCH_CHECK(false, kNoTiles);
}
#endif

std::pair<at::Tensor, at::Tensor> round_fixed(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kFloat), scales = wide.abs().amax(-1, /*keepdim=*/true) / kLargestFixed;
  return {(wide / at::where(scales == 0, 1.0f, scales)).round().to(at::kShort), scales};
}

PackedMatrix pack_floats(const at::Tensor& weight) {
  const int64_t outputs = weight.size(0), panels = (outputs + kFloatPanel - 1) / kFloatPanel;
  const at::Tensor padded = at::constant_pad_nd(weight.to(at::kFloat), {0, 0, 0, panels * kFloatPanel - outputs});
  return {padded.view({panels, kFloatPanel, weight.size(1)}).transpose(1, 2).contiguous(), outputs};
}

#if defined(CARILLON_FLOAT_TILES)
void matmul(const PackedMatrix& matrix, const FloatTileInput& input, int64_t rows, const FloatTileEpilogue& epilogue) {
  // A block of rows stays in the L2 cache while it is multiplied by all panels.
  constexpr int64_t kBlockBytes = 128 << 10;
  const int64_t row_bytes = input.row_stride * static_cast<int64_t>(sizeof(float));
  const int64_t block = std::clamp<int64_t>(kBlockBytes / row_bytes, kFloatRows, 256) / kFloatRows * kFloatRows;
  const auto* data = matrix.panels.const_data_ptr<float>();
  const int64_t panel_count = matrix.panels.size(0), panel_elements = matrix.panels.size(1) * kFloatPanel;
  at::parallel_for(0, (rows + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index * block, count = std::min(block, rows - row);
      for (int64_t panel = 0; panel < panel_count; ++panel) {
        const int64_t output = panel * kFloatPanel;
        tiles_float(input.from(row), count, data + panel * panel_elements,
                    static_cast<int>(std::min<int64_t>(kFloatPanel, matrix.outputs - output)),
                    epilogue.from(row, output));
      }
    }
  });
}

static void unpacked_float(const at::Tensor& x, const StoredMatrix& weight, const at::Tensor& bias, at::Tensor& out) {
  constexpr int64_t kDepthBlock = 1024;  // 64 KiB of a panel, which stay in the L2 cache
  const int64_t panels = (weight.outputs + kFloatPanel - 1) / kFloatPanel, depth = weight.depth;
  FloatTileEpilogue begin_sum, go_on;
  begin_sum.out = go_on.out = out.mutable_data_ptr<float>();
  begin_sum.out_stride = go_on.out_stride = go_on.residual_stride = weight.outputs;
  if (bias.defined()) begin_sum.bias = bias.const_data_ptr<float>();
  go_on.residual = go_on.out;
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor buffer = at::empty({depth, kFloatPanel}, at::kFloat);
    auto* const panel = buffer.mutable_data_ptr<float>();
    const int64_t last = std::min(end * kFloatPanel, weight.outputs);
    for (int64_t output = begin * kFloatPanel; output < last; output += kFloatPanel) {
      pack_panel_float(weight, output, panel);
      const int outputs = static_cast<int>(std::min<int64_t>(kFloatPanel, last - output));
      for (int64_t k = 0; k < depth; k += kDepthBlock) {
        const FloatTileInput input{x.const_data_ptr<float>() + k, depth, 0, 1, std::min(kDepthBlock, depth - k)};
        tiles_float(input, x.size(0), panel + k * kFloatPanel, outputs, (k == 0 ? begin_sum : go_on).from(0, output));
      }
    }
  });
}
#else
constexpr const char* kNoFloatTiles = "float32 tiles need AVX2 or NEON";
void matmul(const PackedMatrix&, const FloatTileInput&, int64_t, const FloatTileEpilogue&) {
  TORCH_CHECK(false, kNoFloatTiles);
}
static void unpacked_float(const at::Tensor&, const StoredMatrix&, const at::Tensor&, at::Tensor&) {
  TORCH_CHECK(false, kNoFloatTiles);
}
#endif

void matmul_unpacked(const at::Tensor& x, const StoredMatrix& weight, const at::Tensor& bias, at::Tensor& out) {
  (x.scalar_type() == at::kBFloat16 ? unpacked_bfloat16 : unpacked_float)(x, weight, bias, out);
}

}  // namespace carillon::kernels
