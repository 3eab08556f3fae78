#pragma once

namespace carillon::kernels {

// CARILLON_CPU_KERNELS limits the detected instruction sets (none, avx2 or avx512) to test code for other machines.

/// Whether there are tiles for float32 products (packed_matrix.h): x86-64 with AVX2 and FMA, and every arm64.
bool has_float_tiles();

/// Whether they are faster than libtorch's products of many rows, which is the case without AVX-512.
bool prefers_float_tiles();

/// Whether build and machine support AVX-512 with bfloat16 dot products (Cooper Lake, Sapphire Rapids, Zen 4 and
/// later). Without it, all kernels except float32 tiles use their plain reference.
bool has_avx512();

/// Whether there are also matrix tiles of bfloat16 (Sapphire Rapids and later) that the operating system grants this
/// process.
bool has_amx();

}  // namespace carillon::kernels
