#include "core/adapters/lokr_shapes.h"

#include <algorithm>

namespace carillon {

Split split_dimension(int64_t dimension, int64_t factor) {
  const auto ordered = [](int64_t a, int64_t b) { return Split{std::min(a, b), std::max(a, b)}; };
  if (factor > 0 && dimension % factor == 0) return ordered(factor, dimension / factor);
  const int64_t largest = factor < 0 ? dimension : factor;
  int64_t divisor = 1;
  while (divisor < dimension / divisor) {
    int64_t next = divisor + 1;
    while (dimension % next != 0) ++next;
    if (next > largest) break;
    divisor = next;
  }
  return ordered(divisor, dimension / divisor);
}

LokrShape LokrShape::of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both) {
  const Split rows = split_dimension(out, factor), columns = split_dimension(in, factor);
  const auto is_low_rank = [&](int64_t a, int64_t b) { return 2 * rank < std::max(a, b); };
  return {.out = rows,
          .in = columns,
          .w1_is_whole = !(decompose_both && is_low_rank(rows.small, columns.small)),
          .w2_is_whole = !is_low_rank(rows.large, columns.large)};
}

double LokrShape::effective_alpha(double alpha, int64_t rank) const {
  return (w1_is_whole && w2_is_whole) || alpha == 0 ? static_cast<double>(rank) : alpha;
}

}  // namespace carillon
