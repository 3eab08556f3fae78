#pragma once
#include <cstdint>

namespace carillon::kernels {

#if defined(CARILLON_AVX512)
/// y = x + sin(frequency x)^2 gain of one row. Element: float, or uint16_t for the bits of bfloat16.
template <typename Element>
void snake_row_avx512(const Element* x, float frequency, float gain, Element* y, int64_t length);

/// Of one row's gradient: dx = dy (1 + gain frequency sin(2 frequency x)); the sums are those of the two constants.
struct SnakeRowSums {
  float frequency, gain;
};
template <typename Element>
SnakeRowSums snake_row_backward_avx512(const Element* x, const Element* dy, float frequency, float gain, Element* dx,
                                       int64_t length);
#endif

}  // namespace carillon::kernels
