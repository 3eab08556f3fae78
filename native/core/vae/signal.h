#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace carillon {

/// One signal inside the network, in one of two layouts: [B, C, T] where libtorch convolves, and time-major rows
/// [kHalo + T + kHalo, C] of bfloat16 where the CPU kernels do. The halo rows are zero: they are the padding of a
/// convolution.
struct Signal {
  static constexpr int64_t kHalo = 32;  // the widest reach, 3 * dilation 9, and room for a whole stride
  at::Tensor data;
  int64_t length = 0;  // T
};

/// Recycles the buffers of time-major signals: fresh memory would cost a page fault every 4 KiB.
class SignalPool {
 public:
  /// A signal whose rows are not initialised and whose halo is zero. Its memory returns to the pool once no
  /// tensor on it is left.
  Signal take(int64_t length, int64_t channels);

 private:
  std::vector<at::Tensor> buffers_;
};

/// Zeroes the rows before the first and after the last of a time-major signal.
void clear_halo(const Signal& signal);

}  // namespace carillon
