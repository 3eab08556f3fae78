#pragma once
#include <cstdint>
#include <variant>

namespace carillon {

/// Low-rank adaptation (Hu et al., 2021): delta = alpha / rank * B A.
struct LoraDesign {
  int64_t rank = 64;
  double alpha = 128;
  double dropout = 0.1;  // 0 .. 1, of A's input, in training only
};

/// Kronecker products (Yeh et al., 2023, LyCORIS): delta = alpha / dimension * scalar * kron(w1, w2).
struct LokrDesign {
  int64_t dimension = 64;  // rank of a factor that is wide enough to be split in two
  double alpha = 128;      // counts as `dimension` where both factors are whole, and where it is 0
  int64_t factor = -1;     // rows and columns of w1, where they divide; -1: the split nearest to a square
  bool decompose_both = false;
  bool use_tucker = false;  // of convolutions, and adapters have none: no effect
  bool use_scalar = false;
  bool weight_decompose = true;  // DoRA: a trained magnitude per output row
};

using AdapterDesign = std::variant<LoraDesign, LokrDesign>;

}  // namespace carillon
