#include "core/tasks/cover.h"

#include <ATen/ATen.h>

namespace carillon {

ContextInputs cover_source(const at::Tensor& latents) {
  return {.source = latents,
          .chunk_mask = at::ones_like(latents),
          .is_cover = at::ones({1}, latents.options().dtype(at::kBool)),
          .hints = {}};
}

}  // namespace carillon
