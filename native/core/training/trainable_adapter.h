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

/// The change of a projection that is trained. It is exactly zero before training.
struct TrainedDelta {
  double scale = 1;  // alpha / rank (LoRA), alpha / dimension (LoKr)

  virtual ~TrainedDelta() = default;

  /// Trained tensors (leaves of autograd) by name. They share storage with this object.
  virtual NamedTensors parameters() const = 0;

  /// Returns what the adapter adds [..., out] to the projection's output x * weight^T, for x [..., in] and weight
  /// [out, in]. Computes in the type of x, although parameters are float32. `dropout` generates the dropout mask; if it
  /// is undefined, there is no dropout.
  virtual at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const = 0;
};

/// Trained LoRA: y += alpha / rank * dropout(x) * A^T * B^T.
struct TrainedLora : TrainedDelta {
  at::Tensor a;  // [rank, in]
  at::Tensor b;  // [out, rank]
  double dropout_rate;

  /// A is initialised with Kaiming's uniform distribution (slope sqrt(5)), B with zero. `weight` [out, in] is the
  /// weight of the projection.
  TrainedLora(const LoraDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override { return {{"lora_A", a}, {"lora_B", b}}; }
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;
};

/// Trained LoKr, with or without DoRA. A factor is a whole matrix or a product of two; unused tensors are undefined.
struct TrainedLokr : TrainedDelta {
  struct Factor {
    at::Tensor whole;  // undefined if the factor is a product
    at::Tensor a, b;    // factor = a b; undefined if it is whole
    at::Tensor value() const;
  };
  LokrShape shape;
  Factor w1, w2;
  at::Tensor scalar;      // []
  at::Tensor dora_scale;  // [out, 1]: the norm of each row of the changed weight
  double alpha;           // as stored in files

  TrainedLokr(const LokrDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override;
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;

  /// w1 times the scalar, as stored in files.
  at::Tensor scaled_w1() const;

 private:
  at::Tensor apply_factors(const at::Tensor& x) const;
};

/// An adapter in training. It changes each query, key, value and output projection of the attentions through a branch
/// attached to the projection. The model's own weights never change. The model must outlive the adapter and not move.
class TrainableAdapter {
 public:
  struct Module {
    std::string name;   // layers.0.self_attn.q_proj
    at::Tensor weight;  // [out, in], of the model
    std::shared_ptr<TrainedDelta> delta;
  };

  /// Draws initial weights from `seed`. Throws kBadArgument if the design is out of range or the model has no attention
  /// projections.
  TrainableAdapter(Dit& dit, const AdapterDesign& design, uint64_t seed);
  ~TrainableAdapter();
  TrainableAdapter(const TrainableAdapter&) = delete;
  TrainableAdapter& operator=(const TrainableAdapter&) = delete;

  const AdapterDesign& design() const { return design_; }
  const std::vector<Module>& modules() const { return modules_; }

  /// Trained tensors as `module.parameter`, in a fixed order.
  const NamedTensors& parameters() const { return parameters_; }
  int64_t parameter_count() const;

  /// Sets the seed of dropout. Until the next call, every forward pass drops the same inputs. nullopt: no dropout.
  void set_dropout(std::optional<uint64_t> seed) { *dropout_seed_ = seed; }

 private:
  AdapterDesign design_;
  std::vector<Module> modules_;
  NamedTensors parameters_;
  std::vector<nn::Linear*> linears_;
  std::shared_ptr<std::optional<uint64_t>> dropout_seed_;
};

}  // namespace carillon
