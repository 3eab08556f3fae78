#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/device.h"

namespace carillon::parity {

/// One golden file: its inputs, its parameters and the comparison of what a module computed with its outputs.
class Case {
 public:
  Case(const std::string& checkpoints, const std::string& golden_path, const Placement& placement);

  std::string name, module;
  std::string checkpoint_directory;  // of the folder `checkpoints`
  Json params;
  Placement placement;

  bool has_input(const std::string& name) const { return golden_.has("in." + name); }
  bool has_output(const std::string& name) const { return golden_.has("out." + name); }
  /// Tensor `in.NAME` on the placement's device; floating tensors in its dtype.
  at::Tensor input(const std::string& name) const;
  /// Tensor `in.NAME` on the CPU exactly as stored.
  at::Tensor stored_input(const std::string& name) const { return golden_.tensor("in." + name); }

  /// Compares `actual` with `out.NAME`: floating outputs by relative L2 error, integer outputs by equality.
  /// With `mask` (the leading dimensions of the output, nonzero = compare) only those rows count.
  void compare(const std::string& name, const at::Tensor& actual, const at::Tensor& mask = {});

  struct Comparison {
    std::string output;
    bool integer;
    double error;  // relative L2, or the share of unequal integers
  };
  const std::vector<Comparison>& comparisons() const { return comparisons_; }
  /// Outputs of the golden that were never compared.
  std::vector<std::string> missing() const;

 private:
  Safetensors golden_;
  std::vector<Comparison> comparisons_;
};

/// How long a chain of arithmetic a golden measures; the limits follow from it (parity.cpp).
enum class Depth {
  kModule,   // one module
  kSampler,  // a whole denoising loop
  kVae,      // many convolutions in a row, with weights that magnify a rounding
};

/// Runs the module on the inputs of a case and compares every output of the golden once.
using Function = void (*)(Case&);

/// Makes `function` run every golden whose module is `name`. Returns true, to initialise a static.
bool register_module(const std::string& name, Depth depth, Function function);

struct Module {
  Depth depth;
  Function function;
};
/// The module registered as `name`, or null.
const Module* find_module(const std::string& name);

}  // namespace carillon::parity
