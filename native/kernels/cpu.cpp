#include "kernels/cpu.h"

namespace carillon::kernels {

bool has_avx512() {
#if defined(CARILLON_AVX512)
  static const bool present = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bf16");
  }();
  return present;
#else
  return false;
#endif
}

}  // namespace carillon::kernels
