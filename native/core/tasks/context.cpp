#include "core/tasks/context.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace carillon {

int64_t rendered_frames(const AceStep& model, int64_t frames) {
  constexpr int64_t kFewestFrames = 128;
  return std::max(frames, std::min(kFewestFrames, model.max_frames()));
}

at::Tensor make_context(const AceStep& model, const ContextInputs& inputs) {
  at::Tensor source = inputs.source;
  if (inputs.is_cover.any().item<bool>()) {
    const at::Tensor hints =
        inputs.hints.defined()
            ? inputs.hints
            : model.detokenizer.hints(model.tokenizer.tokenize(inputs.source, model.silence).quantized);
    source = at::where(inputs.is_cover.reshape({-1, 1, 1}), hints.narrow(1, 0, source.size(1)), source);
  }
  return at::cat({source, inputs.chunk_mask}, 2).to(model.placement.dtype);
}

}  // namespace carillon
