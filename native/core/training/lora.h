#pragma once
#include "core/training/adapter_design.h"
#include "core/training/trained_delta.h"

namespace carillon {

/// LoRA under training: y += alpha / rank * dropout(x) A^T B^T (reference training.md 4).
struct TrainedLora : TrainedDelta {
  at::Tensor a;  // [rank, in]
  at::Tensor b;  // [out, rank]
  double scale, dropout_rate;

  /// A as Kaiming's uniform law with slope sqrt(5) has it, B zero. `weight` [out, in] is that of the projection.
  TrainedLora(const LoraDesign& design, const at::Tensor& weight, at::Generator& generator);

  NamedTensors parameters() const override { return {{"lora_A", a}, {"lora_B", b}}; }
  at::Tensor apply(const at::Tensor& x, const at::Tensor& weight, const at::Generator& dropout) const override;
};

}  // namespace carillon
