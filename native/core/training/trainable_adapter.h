#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/adapter.h"
#include "core/dit/dit.h"
#include "core/training/adapter_training.h"

namespace carillon {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<at::Tensor> tensors_of(const NamedTensors& named);

/// The change of one projection under training. It begins as exactly nothing.
struct TrainedDelta {
  double scale = 1;  // as stored

  virtual ~TrainedDelta() = default;

  /// The leaves that are trained, under the names that the parameterisation gives them. They share their storage with
  /// this object.
  virtual NamedTensors parameters() const = 0;

  /// What is added to x [..., in] times `weight` [out, in] transposed: [..., out]. Computed in the type of x from
  /// float32 parameters. `dropout` draws what is dropped; undefined drops nothing.
  virtual at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const = 0;
};

/// LoRA under training: y += alpha / rank * dropout(x) A^T B^T.
struct TrainedLora : TrainedDelta {
  at::Tensor a;  // [rank, in]
  at::Tensor b;  // [out, rank]
  double dropout_rate;

  /// A as Kaiming's uniform law with slope sqrt(5) has it, B zero. `weight` [out, in] is that of the projection.
  TrainedLora(const LoraDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override { return {{"lora_A", a}, {"lora_B", b}}; }
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;
};

/// LoKr under training, with DoRA where the design asks for it. A factor is one whole matrix or the product of two; a
/// tensor that the design has no use for is undefined.
struct TrainedLokr : TrainedDelta {
  struct Factor {
    at::Tensor whole;  // or
    at::Tensor a, b;
    at::Tensor value() const;
  };
  LokrShape shape;
  Factor w1, w2;
  at::Tensor scalar;      // []
  at::Tensor dora_scale;  // [out, 1]: the norm of each row of the changed weight
  double alpha;           // as stored

  TrainedLokr(const LokrDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override;
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;

  /// w1 times the scalar: what files hold.
  at::Tensor scaled_w1() const;

 private:
  at::Tensor apply_factors(const at::Tensor& x) const;
};

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
