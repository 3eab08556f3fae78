#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/training/random_streams.h"

namespace carillon {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<at::Tensor> tensors_of(const NamedTensors& named);

/// The change of one projection under training. It begins as exactly nothing.
class TrainedDelta {
 public:
  virtual ~TrainedDelta() = default;

  /// The leaves that are trained, under the names that the parameterisation gives them. They share their storage with
  /// this object.
  virtual NamedTensors parameters() const = 0;

  /// What is added to x [..., in] times `weight` [out, in] transposed: [..., out]. Computed in the type of x from
  /// float32 parameters. `dropout` draws what is dropped; undefined drops nothing.
  virtual at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const = 0;
};

/// A parameter drawn from -bound .. bound.
at::Tensor uniform_parameter(at::IntArrayRef shape, double bound, at::Generator& generator, at::Device device);
at::Tensor constant_parameter(at::IntArrayRef shape, double value, at::Device device);

}  // namespace carillon
