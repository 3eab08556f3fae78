#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/diffusion/denoise.h"
#include "core/dit/ace_step.h"
#include "core/runtime/control.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// When tokens are sung, by what heads of attention make of them: `weights` [tokens, patches] float32 in 0 .. 1 for
/// each. The path of most weight through all tokens and patches (dynamic time warping), where a weight counts that
/// stands out among its token's and among its patch's. After the reference's lyric alignment.
class LyricAlignment {
 public:
  void add(const at::Tensor& weights);
  /// Of each token, ascending: the first patch of its part of the path at which it is heard, else of that part. Empty
  /// where no token is heard at all.
  std::vector<int64_t> first_patches() const;

 private:
  at::Tensor sum_;  // [tokens, patches] of what stood out
  double total_ = 0, total_of_squares_ = 0, heads_ = 0;
};

/// When each token of the span is sung, in the first `patches` of the DiT, read from how the model listens to the
/// lyrics of one song: its finished latents [1, T, C] float32 with as much `noise` as a last of `steps` steps has,
/// under the conditions that it was rendered of. Empty where the model hears none. The model must have lyric heads.
/// Checks for cancellation between them.
std::vector<int64_t> sung_patches(const AceStep& model, const at::Tensor& latents, const at::Tensor& noise,
                                  const Conditions& conditions, const LyricSpan& lyrics, int steps, int64_t patches,
                                  const Control& control);

}  // namespace carillon
