#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace carillon {

/// AdamW (Loshchilov and Hutter, 2019) with betas 0.9 and 0.999, epsilon 1e-8, decoupled weight decay 0.01.
/// Parameters, gradients and moments are float32.
class AdamW {
 public:
  explicit AdamW(std::vector<at::Tensor> parameters);

  /// Step number `step`, 0 for the first, with the gradients that the parameters hold. One without is left alone.
  void step(int64_t step, double learning_rate);

  /// The moments in the order of the parameters; restoring them is copying into them.
  const std::vector<at::Tensor>& means() const { return means_; }
  const std::vector<at::Tensor>& squares() const { return squares_; }

 private:
  std::vector<at::Tensor> parameters_, means_, squares_;
};

/// The Euclidean norm of all gradients together; not finite where any of them is not.
double gradient_norm(const std::vector<at::Tensor>& parameters);

/// How many parameters have a gradient whose norm is not finite.
int64_t count_not_finite(const std::vector<at::Tensor>& parameters);

/// Scales the gradients, whose norm is `norm`, so that it is at most `limit`.
void clip_gradients(const std::vector<at::Tensor>& parameters, double norm, double limit);

void clear_gradients(const std::vector<at::Tensor>& parameters);

}  // namespace carillon
