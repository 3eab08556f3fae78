#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/device.h"

namespace carillon::parity {

/// A golden file: its inputs and parameters, and the comparison of computed outputs with the expected ones.
class Case {
 public:
  Case(const std::string& checkpoints, const std::string& golden_path, const Placement& placement);

  std::string name, module;
  std::string checkpoint_directory;  // folder of its checkpoint, inside `checkpoints`
  Json params;
  Placement placement;

  bool has_input(const std::string& name) const { return golden_.has("in." + name); }
  bool has_output(const std::string& name) const { return golden_.has("out." + name); }
  /// Tensor `in.NAME` on the placement's device. A floating tensor has the placement's dtype.
  at::Tensor input(const std::string& name) const;
  /// Tensor `in.NAME` on the CPU as stored.
  at::Tensor stored_input(const std::string& name) const { return golden_.tensor("in." + name); }

  /// Compares `actual` with `out.NAME`: floating outputs by relative L2 error, integer outputs by equality. Does nothing
  /// if the golden lacks this output.
  /// Compares only the rows for which `mask` is nonzero; `mask` has the leading dimensions of the output.
  void compare(const std::string& name, const at::Tensor& actual, const at::Tensor& mask = {});

  struct Comparison {
    std::string output;
    bool integer;
    double error;  // relative L2, or share of unequal integers
  };
  const std::vector<Comparison>& comparisons() const { return comparisons_; }
  /// Outputs of the golden that were never compared.
  std::vector<std::string> missing() const;

 private:
  Safetensors golden_;
  std::vector<Comparison> comparisons_;
};

/// How much computation a golden covers, which determines its error limit (parity.cpp).
enum class Depth {
  kModule,   // one module
  kSampler,  // a whole denoising loop
  kVae,      // many convolutions in sequence, whose weights amplify rounding
};

/// Runs a module on the inputs of a case and compares every output once.
using Function = void (*)(Case&);

/// Registers `function` for goldens of module `name`. Returns true, so that the call can initialise a static variable.
bool register_module(const std::string& name, Depth depth, Function function);

struct Module {
  Depth depth;
  Function function;
};
/// Module registered as `name`, or null.
const Module* find_module(const std::string& name);

}  // namespace carillon::parity
