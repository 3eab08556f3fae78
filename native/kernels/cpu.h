#pragma once

namespace carillon::kernels {

// CARILLON_CPU_KERNELS caps what these find: none, avx2 or avx512. For tests of what runs on other machines.

/// True where float32 products have tiles (packed_matrix.h): x86-64 with AVX2 and FMA, and every arm64.
bool has_float_tiles();

/// True where they are faster than libtorch's products of many rows: where those have no AVX-512 to use.
bool prefers_float_tiles();

/// True where this build and this machine have AVX-512 with bfloat16 dot products (Cooper Lake, Sapphire Rapids,
/// Zen 4 and later). Elsewhere all but float32 tiles run their plain reference.
bool has_avx512();

/// True where there are also matrix tiles of bfloat16 (Sapphire Rapids and later) that the operating system lends to
/// this process.
bool has_amx();

}  // namespace carillon::kernels
