#include "core/diffusion/flow_matching.h"

#include <ATen/ATen.h>

namespace carillon {

at::Tensor noised(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times) {
  const at::Tensor time = times.reshape({-1, 1, 1});
  return time * noise + (1.0 - time) * data;
}

at::Tensor run_layer(const LayerFunction& layer, const at::Tensor& x) { return layer(x); }

at::Tensor flow_matching_loss(const Dit& dit, const FlowMatchingBatch& batch, const LayerRunner& run) {
  const at::Tensor state = noised(batch.data, batch.noise, batch.times).to(batch.context.scalar_type());
  const at::Tensor velocity = dit.velocity_by_layer(state, dit.embed_context(batch.context), dit.modulate(batch.times),
                                                    batch.encoder_states, batch.encoder_mask, run);
  return at::mse_loss(velocity.to(at::kFloat), (batch.noise - batch.data).to(at::kFloat));
}

}  // namespace carillon
