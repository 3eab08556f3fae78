#pragma once

namespace carillon::kernels {

/// True where this build and this machine have AVX-512 with bfloat16 dot products (Cooper Lake, Sapphire Rapids,
/// Zen 4 and later). Elsewhere every kernel runs its plain reference.
bool has_avx512();

/// True where there are also matrix tiles of bfloat16 (Sapphire Rapids and later) that the operating system lends to
/// this process.
bool has_amx();

}  // namespace carillon::kernels
