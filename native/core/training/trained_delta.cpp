#include "core/training/trained_delta.h"

#include <ATen/ATen.h>

namespace carillon {

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

at::Tensor uniform_parameter(at::IntArrayRef shape, double bound, at::Generator& generator, at::Device device) {
  at::Tensor values = at::empty(shape, at::kFloat).uniform_(-bound, bound, generator);
  return values.to(device).requires_grad_();
}

at::Tensor constant_parameter(at::IntArrayRef shape, double value, at::Device device) {
  return at::full(shape, value, at::device(device).dtype(at::kFloat)).requires_grad_();
}

}  // namespace carillon
