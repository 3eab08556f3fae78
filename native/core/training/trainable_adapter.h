#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dit/dit.h"
#include "core/training/adapter_design.h"
#include "core/training/trained_delta.h"

namespace carillon {

/// An adapter under training: one change of each query, key, value and output projection of the attentions, attached
/// to the model as branches. The model's own weights are never written. The model must outlive it and stay in place.
class TrainableAdapter {
 public:
  struct Module {
    std::string name;   // layers.0.self_attn.q_proj
    at::Tensor weight;  // [out, in], the model's
    std::shared_ptr<TrainedDelta> delta;
  };

  /// Draws initial weights from `seed`. A design out of range, or a model without such projections, is kBadArgument.
  TrainableAdapter(Dit& dit, const AdapterDesign& design, uint64_t seed);
  ~TrainableAdapter();
  TrainableAdapter(const TrainableAdapter&) = delete;
  TrainableAdapter& operator=(const TrainableAdapter&) = delete;

  const AdapterDesign& design() const { return design_; }
  const std::vector<Module>& modules() const { return modules_; }

  /// What is trained, as `module.parameter`, in a fixed order; all of them leaves.
  const NamedTensors& parameters() const { return parameters_; }
  int64_t parameter_count() const;

  /// From now on every forward pass drops inputs as `seed` says, the same ones each time; nullopt: none.
  void set_dropout(std::optional<uint64_t> seed) { *dropout_seed_ = seed; }

 private:
  AdapterDesign design_;
  std::vector<Module> modules_;
  NamedTensors parameters_;
  std::vector<nn::Linear*> linears_;
  std::shared_ptr<std::optional<uint64_t>> dropout_seed_;
};

}  // namespace carillon
