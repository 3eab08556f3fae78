#include "core/tasks/stems.h"

#include <ATen/ATen.h>

namespace carillon {

ContextInputs stems_source(const at::Tensor& latents, const at::Tensor& chunk_mask) {
  return {.source = latents,
          .chunk_mask = chunk_mask.unsqueeze(-1).expand_as(latents),
          .is_cover = at::zeros({1}, latents.options().dtype(at::kBool)),
          .hints = {}};
}

}  // namespace carillon
