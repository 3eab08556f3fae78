#include "core/diffusion/flow_matching.h"

#include <ATen/ATen.h>

namespace carillon {

at::Tensor noised(const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times) {
  const at::Tensor time = times.reshape({-1, 1, 1});
  return time * noise + (1.0 - time) * data;
}

at::Tensor flow_matching_loss(const Dit& dit, const at::Tensor& data, const at::Tensor& noise, const at::Tensor& times,
                              const at::Tensor& context, const at::Tensor& encoder_states) {
  const at::Tensor state = noised(data, noise, times).to(context.scalar_type());
  const at::Tensor velocity =
      dit.velocity(state, dit.embed_context(context), dit.modulate(times), dit.attend_to(encoder_states));
  return at::mse_loss(velocity.to(at::kFloat), (noise - data).to(at::kFloat));
}

}  // namespace carillon
