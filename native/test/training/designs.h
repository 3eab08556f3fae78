#pragma once
#include "core/training/adapter_training.h"

namespace carillon::test {

// Adapter designs for tests, with the defaults of the service.

struct Lora {
  int64_t rank = 64;
  double alpha = 128;
  double dropout = 0.1;

  operator LoraDesign() const { return {rank, alpha, dropout}; }
};

struct Lokr {
  int64_t dimension = 64;
  double alpha = 128;
  int64_t factor = -1;
  bool decompose_both = false;
  bool use_tucker = false;
  bool use_scalar = false;
  bool weight_decompose = true;

  operator LokrDesign() const {
    return {dimension, alpha, factor, decompose_both, use_tucker, use_scalar, weight_decompose};
  }
};

}  // namespace carillon::test
