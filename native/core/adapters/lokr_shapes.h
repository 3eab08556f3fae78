#pragma once
#include <cstdint>

namespace carillon {

/// A dimension as a product, small * large with small <= large.
struct Split {
  int64_t small, large;
  bool operator==(const Split&) const = default;
};

/// The split of `dimension` that LyCORIS chooses: by `factor` where that divides it, else by the largest divisor up to
/// `factor`; a negative factor asks for the split nearest to a square (reference training.md 5.1).
Split split_dimension(int64_t dimension, int64_t factor);

/// How a LoKr adapter of a weight [out, in] is made: its change is kron(w1, w2), each of w1 and w2 whole or a product
/// of two matrices with `rank` columns and rows (reference training.md 5.2).
struct LokrShape {
  Split out, in;  // w1 [out.small, in.small], w2 [out.large, in.large]
  bool w1_is_whole, w2_is_whole;

  static LokrShape of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both);

  /// `alpha` as stored: where both are whole it is the rank, whatever was asked for, so that the scale is 1.
  double effective_alpha(double alpha, int64_t rank) const;
};

}  // namespace carillon
