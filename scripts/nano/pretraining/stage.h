#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/parameters.h"
#include "pretraining/draw.h"

namespace carillon::pretraining {

using Figures = std::map<std::string, double>;

/// What a batch gave: `total` is what is minimised, `parts` are told.
struct Loss {
  at::Tensor total;
  std::map<std::string, at::Tensor> parts;
};

/// One part of the model and its objective. The weights arrive anew for every call: modules are loaded from them.
class TrainingStage {
 public:
  virtual ~TrainingStage() = default;
  virtual Loss loss(const Weights& weights, Draw& draw) const = 0;
  /// Figures on held-out pieces, the same pieces every time. Called without gradients.
  virtual Figures measure(const Weights& weights) const = 0;
};

}  // namespace carillon::pretraining
