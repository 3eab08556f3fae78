#include "kernels/simd_avx512.h"
#include "kernels/snake_rows.h"

namespace carillon::kernels {

template <typename Element>
void snake_row_avx512(const Element* x, float frequency, float gain, Element* y, int64_t length) {
  const __m512 f = _mm512_set1_ps(frequency), g = _mm512_set1_ps(gain);
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    store(y + i, mask, snake(load(x + i, mask), f, g));
  }
}

template <typename Element>
SnakeRowSums snake_row_backward_avx512(const Element* x, const Element* dy, float frequency, float gain, Element* dx,
                                       int64_t length) {
  const __m512 f = _mm512_set1_ps(frequency), slope_gain = _mm512_set1_ps(gain * frequency);
  __m512 of_frequency = _mm512_setzero_ps(), of_gain = _mm512_setzero_ps();
  for (int64_t i = 0; i < length; i += 16) {
    const Mask mask = first_lanes(length - i);
    const __m512 value = load(x + i, mask), upstream = load(dy + i, mask);
    const SineSquared wave = sine_squared_and_slope(_mm512_mul_ps(value, f));
    const __m512 slope = _mm512_mul_ps(upstream, wave.slope);
    of_gain = _mm512_fmadd_ps(upstream, wave.value, of_gain);
    of_frequency = _mm512_fmadd_ps(slope, value, of_frequency);
    store(dx + i, mask, _mm512_fmadd_ps(slope, slope_gain, upstream));
  }
  return {gain * _mm512_reduce_add_ps(of_frequency), _mm512_reduce_add_ps(of_gain)};
}

template void snake_row_avx512(const float*, float, float, float*, int64_t);
template void snake_row_avx512(const uint16_t*, float, float, uint16_t*, int64_t);
template SnakeRowSums snake_row_backward_avx512(const float*, const float*, float, float, float*, int64_t);
template SnakeRowSums snake_row_backward_avx512(const uint16_t*, const uint16_t*, float, float, uint16_t*, int64_t);

}  // namespace carillon::kernels
