#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "kernels/packed_matrix.h"

namespace carillon {

/// What multiplies in convolutions: libtorch, or the time-major kernels of the CPU, in float32, bfloat16 or integers of
/// 14 bits (kernels/packed_matrix.h).
enum class Products { kLibtorch, kFloat, kBfloat16, kFixed };

/// A signal of the network, in one of two layouts: [B, C, T] for libtorch, time-major rows [kHalo + T + kHalo, C] for
/// the CPU kernels. Halo rows are zero; they are the padding of convolutions.
struct Signal {
  static constexpr int64_t kHalo = 32;  // covers the reach of every kernel (at most 3 * 9) and a whole stride
  at::Tensor data;
  int64_t length = 0;  // T
  at::Tensor scales = {};  // of integers: float32 [kHalo + T + kHalo, C / kCodeBlock]

  /// View of the rows first .. first + count - 1 and of a halo, which may have other rows of the signal.
  Signal part(int64_t first, int64_t count) const;
};

/// Recycles buffers of time-major signals, because new memory costs a page fault every 4 KiB.
class SignalPool {
 public:
  /// Uninitialised signal; call clear_halo after writing to it. Its memory returns to the pool once no tensor uses it.
  /// Integers (int16) get scales.
  Signal take(int64_t length, int64_t channels, at::ScalarType dtype);

 private:
  std::vector<at::Tensor> buffers_;
};

/// Zeroes the rows before the first and after the last of a time-major signal.
void clear_halo(const Signal& signal);

/// Constants of the activation Snake per channel, float32 [C]: y = x + sin(frequency * x)^2 * gain.
struct Snake {
  at::Tensor frequency;  // exp(alpha)
  at::Tensor gain;       // 1 / (exp(beta) + 1e-9)

  static Snake load(const Weights& weights, int64_t channels);
};

struct ConvolutionShape {
  int64_t in, out, kernel;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;
  bool transposed = false;
  bool bias = true;
};

/// Epilogue of a convolution, computed while its rows are in registers.
struct Epilogue {
  const Signal* residual = nullptr;  // added to the result
  const Snake* snake = nullptr;      // also return snake(result)
  bool keep = false;                 // also return the result itself
};

/// A one-dimensional convolution, plain or transposed, with a fused epilogue. In time-major layout, the convolution is
/// a matrix product over the rows of the signal. A dilated convolution reads one row per tap. A strided convolution
/// reads consecutive rows. A transposed convolution with kernel 2 * s and stride s computes s outputs from two inputs.
class Convolution {
 public:
  /// Computes weight-normalised weights from their two tensors in float32; uses a plain `weight` unchanged.
  static Convolution load(const Weights& weights, const ConvolutionShape& shape, Products products);

  struct Result {
    Signal plain, snaked;
  };
  Result operator()(const Signal& x, const Epilogue& then, SignalPool& pool) const;

  /// Applies the last convolution of a network. Returns float32 [B, out, T].
  at::Tensor run_to_float(const Signal& x) const;

  int64_t output_length(int64_t input_length) const;
  int64_t input_channels() const { return shape_.in; }
  int64_t stride() const { return shape_.stride; }

 private:
  at::Tensor run_with_libtorch(const Signal& x, const at::Tensor& bias) const;
  /// Number of consecutive output steps that one row of the matrix product computes.
  int64_t steps_per_row() const { return shape_.transposed ? shape_.stride : grouped_steps_; }
  template <typename Element>
  Result run_time_major(const Signal& x, const Epilogue& then, SignalPool& pool) const;
  template <typename Element>
  at::Tensor run_time_major_to_float(const Signal& x) const;
  template <typename Element>
  void multiply(const Signal& x, int64_t length, kernels::BasicTileEpilogue<Element> epilogue) const;

  ConvolutionShape shape_;  // integers: with input channels of zeros up to a whole block
  Products products_ = Products::kLibtorch;
  at::Tensor bias_;               // time-major: float32, one per matrix row; undefined for none
  at::Tensor weight_;             // in libtorch's layout; undefined when time-major
  kernels::PackedMatrix matrix_;  // only when time-major
  int64_t grouped_steps_ = 1;     // consecutive outputs per row of the product (steps_to_group)
};

}  // namespace carillon
