#include "core/qwen3/text_encoder.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "core/runtime/error.h"

namespace carillon {

TextEncoder TextEncoder::load(const std::string& directory, const Placement& placement, const Control& control) {
  TextEncoder encoder;
  const Checkpoint checkpoint = Checkpoint::open(directory);
  checkpoint.require_memory(placement);
  encoder.stack_ = Qwen3Stack::load(checkpoint.weights(placement), Qwen3Config::read(directory), control);
  encoder.placement_ = placement;
  encoder.unused_tensors_ = checkpoint.unused();
  return encoder;
}

at::Tensor TextEncoder::encode(const at::Tensor& ids) const {
  const at::AutoDispatchBelowADInplaceOrView inference;  // never differentiated; the results are ordinary tensors
  const Qwen3Config& config = stack_.config;
  if (ids.dim() != 2 || ids.size(1) == 0 || ids.size(1) > config.max_position_embeddings) {
    fail(ErrorCode::kBadArgument,
         "token ids must be [B, T] with T in 1 .. " + std::to_string(config.max_position_embeddings));
  }
  return stack_.encode(ids);
}

at::Tensor TextEncoder::embed(const at::Tensor& ids) const {
  const at::AutoDispatchBelowADInplaceOrView inference;
  return stack_.embed(ids);
}

}  // namespace carillon
