#include "kernels/float_tiles.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace carillon::kernels {

at::Tensor pack_floats(const at::Tensor& weight) {
  const int64_t outputs = weight.size(0), panels = (outputs + kFloatPanel - 1) / kFloatPanel;
  const at::Tensor padded = at::constant_pad_nd(weight.to(at::kFloat), {0, 0, 0, panels * kFloatPanel - outputs});
  return padded.view({panels, kFloatPanel, weight.size(1)}).transpose(1, 2).contiguous();
}

#if defined(CARILLON_FLOAT_TILES)
void matmul_floats(const at::Tensor& panels, int64_t outputs, const FloatTileInput& input, int64_t rows,
                   const FloatTileEpilogue& epilogue) {
  // A block of rows stays in L2 while all panels pass over it.
  constexpr int64_t kBlockBytes = 128 << 10;
  const int64_t row_bytes = input.row_stride * static_cast<int64_t>(sizeof(float));
  const int64_t block = std::clamp<int64_t>(kBlockBytes / row_bytes, kFloatRows, 256) / kFloatRows * kFloatRows;
  const auto* data = panels.const_data_ptr<float>();
  const int64_t panel_count = panels.size(0), panel_elements = panels.size(1) * kFloatPanel;
  at::parallel_for(0, (rows + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index * block, count = std::min(block, rows - row);
      for (int64_t panel = 0; panel < panel_count; ++panel) {
        const int64_t output = panel * kFloatPanel;
        tiles_float(input.from(row), count, data + panel * panel_elements,
                    static_cast<int>(std::min<int64_t>(kFloatPanel, outputs - output)), epilogue.from(row, output));
      }
    }
  });
}
#else
void matmul_floats(const at::Tensor&, int64_t, const FloatTileInput&, int64_t, const FloatTileEpilogue&) {
  TORCH_CHECK(false, "this machine has no float tiles");
}
#endif

}  // namespace carillon::kernels
