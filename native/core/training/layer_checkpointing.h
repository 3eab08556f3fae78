#pragma once
#include "core/dit/dit.h"

namespace carillon {

/// A LayerRunner that keeps nothing of a layer but its input, and runs it a second time in the backward pass (Chen et
/// al., 2016). The gradients are those of running it once, bit for bit on the CPU.
at::Tensor run_layer_checkpointed(const LayerFunction& layer, const at::Tensor& x);

}  // namespace carillon
