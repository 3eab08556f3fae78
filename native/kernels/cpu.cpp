#include "kernels/cpu.h"

#if defined(CARILLON_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace carillon::kernels {
namespace {

/// Whether CARILLON_CPU_KERNELS is unset or one of `caps`.
bool is_allowed(std::initializer_list<const char*> caps) {
  const char* const cap = std::getenv("CARILLON_CPU_KERNELS");
  if (cap == nullptr || *cap == '\0') return true;
  return std::any_of(caps.begin(), caps.end(), [&](const char* name) { return std::strcmp(cap, name) == 0; });
}

}  // namespace

bool has_float_tiles() {
#if defined(CARILLON_FLOAT_TILES)
  static const bool present = [] {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
      return false;
#endif
    return is_allowed({"avx2", "avx512"});
  }();
  return present;
#else
  return false;
#endif
}

bool prefers_float_tiles() {
#if defined(__x86_64__)
  static const bool is_capped = !is_allowed({"avx512"});
  return has_float_tiles() && (is_capped || !__builtin_cpu_supports("avx512f"));
#else
  return has_float_tiles();
#endif
}

bool has_avx512() {
#if defined(CARILLON_AVX512)
  static const bool present = [] {
    __builtin_cpu_init();
    return is_allowed({"avx512"}) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  }();
  return present;
#else
  return false;
#endif
}

bool has_amx() {
#if defined(CARILLON_AMX)
  static const bool present = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kFeatures = 7, kBfloat16 = 1u << 22, kTile = 1u << 24;
    const bool in_processor = __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) && (d & kBfloat16) && (d & kTile);
    // Linux saves tile registers only for processes that request it (Documentation/arch/x86/xstate.rst).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return in_processor && has_avx512() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return present;
#else
  return false;
#endif
}

}  // namespace carillon::kernels
