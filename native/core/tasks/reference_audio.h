#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carillon {

/// What the timbre encoder hears of a reference recording [channels, any samples]: [channels, samples], a third of it
/// from the beginning, a third from where the second third of the recording begins, and a third from the end.
/// A recording that is shorter is repeated first. Nothing is drawn by lot: the same recording is the same timbre.
at::Tensor timbre_excerpt(const at::Tensor& recording, int64_t samples);

}  // namespace carillon
