#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>

namespace carillon {

/// The weights of a model in training: float32 leaves with gradients, by their names in a checkpoint.
/// `Checkpoint::of` makes modules load from them, so that whatever loading derives (fused rows, exponentials,
/// transposed kernels) is differentiated too. Modules are therefore loaded anew after every change of a leaf.
class Parameters {
 public:
  /// The first value of a leaf that a module asks for, float32 on the CPU.
  using Initial = std::function<at::Tensor(const std::string& name, at::IntArrayRef shape)>;

  Parameters(at::Device device, Initial initial) : device_(device), initial_(std::move(initial)) {}

  /// The leaf `name`, made where there is none yet. Throws kBadCheckpoint where it has another shape.
  at::Tensor leaf(const std::string& name, at::IntArrayRef shape);
  /// Makes the leaf `name` a copy of `value`.
  void set(const std::string& name, const at::Tensor& value);

  bool has(const std::string& name) const { return leaves_.count(name) != 0; }
  at::Device device() const { return device_; }
  const std::map<std::string, at::Tensor>& leaves() const { return leaves_; }
  int64_t count() const;  // elements of all leaves

 private:
  at::Device device_;
  Initial initial_;
  std::map<std::string, at::Tensor> leaves_;
};

}  // namespace carillon
