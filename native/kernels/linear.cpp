#include "kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/vector_kernels.h"

namespace carillon::kernels {

at::Tensor linear_reference(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) {
  return at::linear(x, weight.dense(x.scalar_type()), bias);
}

namespace {

constexpr int64_t kBytesWorthAThread = 128 << 10;

bool is_differentiated(const at::Tensor& x, const Matrix& weight) {
  return at::GradMode::is_enabled() && (x.requires_grad() || weight.data.requires_grad());
}

#if defined(CARILLON_AVX512)
bool can_multiply_bfloat16(const at::Tensor& x, const Matrix& weight) {
  const auto is_bfloat16 = [](const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kBFloat16; };
  return has_avx512() && is_bfloat16(x) && is_bfloat16(weight.data) && weight.data.is_contiguous() &&
         weight.depth() % 2 == 0;
}

void gemv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y) {
  const int64_t outputs = weight.size(0), depth = weight.size(1);
  const auto* px = static_cast<const uint16_t*>(x.const_data_ptr());
  const auto* pw = static_cast<const uint16_t*>(weight.const_data_ptr());
  const auto* pb = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  auto* py = static_cast<uint16_t*>(y.data_ptr());
  const int rows = static_cast<int>(x.size(0));
  at::parallel_for(0, outputs, kBytesWorthAThread / (2 * depth) + 1, [&](int64_t begin, int64_t end) {
    gemv_avx512(px, rows, pw + begin * depth, end - begin, depth, pb ? pb + begin : nullptr, py + begin, outputs);
  });
}

at::Tensor multiply_bfloat16(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  at::Tensor y = at::empty({rows.size(0), weight.size(0)}, rows.options());
  if (rows.size(0) <= kGemvRows) {
    gemv(rows, weight, wide_bias, y);
  } else {
    matmul_unpacked(rows, weight, wide_bias, y);
  }
  return y;
}
#endif

#if defined(CARILLON_FLOAT_TILES)
/// Weights in another form than x: what is read from memory is the smaller form.
bool can_stream(const at::Tensor& x, const Matrix& weight) {
  const bool is_stored = weight.is_quantized() || weight.data.scalar_type() == at::kBFloat16;
  return has_float_tiles() && x.is_cpu() && weight.data.is_cpu() && is_stored && weight.data.is_contiguous() &&
         weight.depth() % kCodeBlock == 0 && (weight.is_quantized() || x.scalar_type() != weight.data.scalar_type());
}

StoredMatrix stored(const Matrix& weight) {
  constexpr StoredForm kForms[] = {StoredForm::kBfloat16, StoredForm::kInt8, StoredForm::kInt4};
  const auto* scales = weight.is_quantized() ? static_cast<const uint16_t*>(weight.scales.const_data_ptr()) : nullptr;
  return {kForms[static_cast<int>(weight.quantization())], weight.data.const_data_ptr(), scales, weight.outputs(),
          weight.depth()};
}

/// Calls use(rows of the weight, first row) for parts of it on several threads.
template <typename Use>
void in_parts(const Matrix& weight, const Use& use) {
  at::parallel_for(0, weight.outputs(), kBytesWorthAThread / (2 * weight.depth()) + 1,
                   [&](int64_t begin, int64_t end) { use(stored(weight.rows(begin, end - begin)), begin); });
}

at::Tensor stream_few(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  const at::Tensor x = rows.to(at::kFloat);
  const at::Tensor y = at::empty({rows.size(0), weight.outputs()}, x.options());
  in_parts(weight, [&](const StoredMatrix& part, int64_t first) {
    gemv_float(x.const_data_ptr<float>(), static_cast<int>(x.size(0)), part, y.mutable_data_ptr<float>() + first,
               weight.outputs());
  });
  if (bias.defined()) y.add_(bias);
  return y.to(rows.scalar_type());
}

/// Some outputs at a time in the type of x, as many as stay in the processor's cache.
at::Tensor stream_many(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
  constexpr int64_t kWideBytes = 4 << 20;
  const int64_t outputs = weight.outputs(), depth = weight.depth();
  const int64_t group = std::clamp<int64_t>(kWideBytes / (4 * depth), 16, outputs);
  const at::Tensor y = at::empty({rows.size(0), outputs}, rows.options());
  const at::Tensor wide = at::empty({group, depth}, at::kFloat);
  for (int64_t first = 0; first < outputs; first += group) {
    const int64_t count = std::min(group, outputs - first);
    in_parts(weight.rows(first, count), [&](const StoredMatrix& part, int64_t row) {
      widen_float(part, wide.mutable_data_ptr<float>() + row * depth);
    });
    const at::Tensor some_bias = bias.defined() ? bias.narrow(0, first, count) : bias;
    y.narrow(1, first, count).copy_(kernels::linear(rows, wide.narrow(0, 0, count).to(rows.scalar_type()), some_bias));
  }
  return y;
}
#endif

at::Tensor multiply(const at::Tensor& rows, const Matrix& weight, const at::Tensor& bias) {
#if defined(CARILLON_AVX512)
  if (can_multiply_bfloat16(rows, weight)) return multiply_bfloat16(rows, weight.data, bias);
#endif
#if defined(CARILLON_FLOAT_TILES)
  if (can_stream(rows, weight)) return (rows.size(0) <= kGemvRows ? stream_few : stream_many)(rows, weight, bias);
#endif
  return linear_reference(rows, weight, bias);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) {
  if (!x.is_cpu() || x.numel() == 0 || is_differentiated(x, weight)) return linear_reference(x, weight, bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.outputs();
  return multiply(x.reshape({-1, weight.depth()}).contiguous(), weight, bias).view(shape);
}

bool multiplies_stored(const at::Tensor& weight, at::ScalarType dtype, at::Device device) {
  return has_float_tiles() && device.is_cpu() && dtype == at::kFloat && weight.scalar_type() == at::kBFloat16 &&
         weight.size(1) % kCodeBlock == 0;
}

#if defined(CARILLON_AVX512)
namespace {

constexpr int64_t kInputBlockBytes = 384 << 10;  // with a panel beside it this stays in a 1 MiB L2

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Kernel {
  Tiles* tiles;
  int64_t strip_rows;  // how many rows it works on at a time
};

/// For an input on this machine.
Kernel kernel_for([[maybe_unused]] const TileInput& input) {
#if defined(CARILLON_AMX)
  if (has_amx() && input.words % kAmxWords == 0) return {tiles_amx, kAmxRows};
#endif
  return {tiles_avx512, kAvx512Rows};
}

/// The operands, moved to any row and output.
struct Matmul {
  TileInput input;
  TileEpilogue epilogue;
  int64_t outputs;
  Kernel kernel = kernel_for(input);

  void rows(int64_t row, int64_t count, const uint32_t* panel, int64_t output) const {
    kernel.tiles(input.from(row), count, panel, static_cast<int>(std::min<int64_t>(kPanel, outputs - output)),
                 epilogue.from(row, output));
  }
};

/// x with rows that do not lie a multiple of 1 KiB apart: such rows would share few sets of the L1 cache and
/// drive each other out of it.
at::Tensor spread_rows(const at::Tensor& x) {
  constexpr int64_t kAliasElements = 512, kLineElements = 32;
  const int64_t depth = x.size(1);
  if (depth % kAliasElements != 0) return x;
  const at::Tensor spread = at::empty({x.size(0), depth + kLineElements}, x.options()).narrow(1, 0, depth);
  return spread.copy_(x);
}

}  // namespace

PackedMatrix pack(const at::Tensor& weight) {
  const at::Tensor rows = weight.to(at::kBFloat16).contiguous();
  const int64_t outputs = rows.size(0);
  const int64_t words = rows.size(1) / 2;
  TORCH_CHECK(has_avx512() && 2 * words == rows.size(1), "this matrix cannot be packed");
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
  return {packed, outputs};
}

void matmul(const PackedMatrix& matrix, const TileInput& input, int64_t rows, const TileEpilogue& epilogue) {
  const Matmul job{input, epilogue, matrix.outputs};
  const auto* panels = static_cast<const uint32_t*>(matrix.panels.const_data_ptr());
  const int64_t panel_count = matrix.panels.size(0);
  const int64_t panel_words = matrix.panels.size(1) * kPanel;
  const int64_t strip = job.kernel.strip_rows, strips = ceil_divide(rows, strip);
  const int64_t strip_bytes = strip * input.row_stride * 4;
  const int64_t blocks = ceil_divide(strips, std::clamp<int64_t>(kInputBlockBytes / strip_bytes, 2, 16));
  const int64_t block_rows = ceil_divide(strips, blocks) * strip;
  at::parallel_for(0, blocks * panel_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / panel_count * block_rows;
      const int64_t panel = task % panel_count;
      job.rows(row, std::min(block_rows, rows - row), panels + panel * panel_words, panel * kPanel);
    }
  });
}

void matmul_unpacked(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& out) {
  const int64_t rows = x.size(0), outputs = weight.size(0);
  const int64_t words = weight.size(1) / 2;
  const at::Tensor spread = spread_rows(x);
  TileEpilogue epilogue;
  if (bias.defined()) epilogue.bias = bias.const_data_ptr<float>();
  epilogue.out = static_cast<uint16_t*>(out.data_ptr());
  epilogue.out_stride = outputs;
  const TileInput input{static_cast<const uint32_t*>(spread.const_data_ptr()), spread.stride(0) / 2, 0, 1, words};
  const Matmul job{input, epilogue, outputs};
  const int64_t strip = job.kernel.strip_rows;
  const auto* source = static_cast<const uint32_t*>(weight.const_data_ptr());
  // Two panels share each strip of x while it is in the L1 or L2 cache.
  constexpr int64_t kGroup = 2 * kPanel;
  at::parallel_for(0, ceil_divide(outputs, kGroup), 1, [&](int64_t begin, int64_t end) {
    const at::Tensor buffer = at::empty({2, words, kPanel}, at::kInt);
    auto* panels = static_cast<uint32_t*>(buffer.data_ptr());
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kGroup;
      const int64_t last = std::min(outputs, first + kGroup);
      for (int64_t output = first; output < last; output += kPanel) {
        pack_panel_avx512(source + output * words, words, static_cast<int>(std::min<int64_t>(kPanel, last - output)),
                          words, panels + (output - first) * words);
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
PackedMatrix pack(const at::Tensor&) { TORCH_CHECK(false, "this machine cannot pack matrices"); }
void matmul(const PackedMatrix&, const TileInput&, int64_t, const TileEpilogue&) {
  TORCH_CHECK(false, "this machine cannot pack matrices");
}
void matmul_unpacked(const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor&) {
  TORCH_CHECK(false, "this machine cannot pack matrices");
}
#endif

}  // namespace carillon::kernels
