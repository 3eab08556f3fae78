#pragma once
#include "core/adapters/lokr_shapes.h"
#include "core/training/adapter_design.h"
#include "core/training/trained_delta.h"

namespace carillon {

/// LoKr under training, with DoRA where the design asks for it (reference training.md 5). A factor is one whole matrix
/// or the product of two; a tensor that the design has no use for is undefined.
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
  double alpha, scale;    // as stored

  TrainedLokr(const LokrDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override;
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;

  /// w1 times the scalar: what files hold.
  at::Tensor scaled_w1() const;

 private:
  at::Tensor apply_factors(const at::Tensor& x) const;
};

}  // namespace carillon
