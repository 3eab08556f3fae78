#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/diffusion/denoise.h"
#include "core/dit/ace_step.h"
#include "core/runtime/control.h"
#include "core/tasks/render_job.h"

namespace carillon {

/// Aligns lyric tokens with DiT patches by the attention of selected heads. As in the reference, uses dynamic time
/// warping over the salient weights. A weight is salient if it is high for both its token and its patch.
class LyricAlignment {
 public:
  void add_head(const at::Tensor& weights);
  /// For each token, the first patch that the alignment assigns to it. Patches with a salient weight take precedence.
  /// Ascending; empty if no weight is salient.
  std::vector<int64_t> first_patches() const;

 private:
  at::Tensor sum_;  // [tokens, patches] salient weights
  double total_ = 0, total_of_squares_ = 0, heads_ = 0;
};

/// For each token of `lyrics`, the DiT patch at which it is sung, out of the first `patches`. Empty if no attention
/// weight is salient. The model must have lyric heads. Evaluates it once with the song's conditions. The input is the
/// finished `latents` [1, T, C] float32, mixed with `noise` at time 1 / `steps`. Checks for cancellation after each
/// head.
std::vector<int64_t> sung_patches(const AceStep& model, const at::Tensor& latents, const at::Tensor& noise,
                                  const Conditions& conditions, const LyricSpan& lyrics, int steps, int64_t patches,
                                  const Control& control);

}  // namespace carillon
