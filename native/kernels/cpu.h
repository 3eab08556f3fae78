#pragma once

namespace carillon::kernels {

// The environment variable CARILLON_CPU_KERNELS (none, avx2 or avx512) limits the instruction sets that these functions
// report, to test the code for other machines.

/// Whether this build and the processor support float32 tiles (packed_matrix.h): x86-64 with AVX2 and FMA, and every
/// arm64.
bool has_float_tiles();

/// Whether float32 tiles are faster than libtorch for products of many rows. This is so on machines without AVX-512.
bool prefers_float_tiles();

/// Whether this build and the processor support AVX-512 with bfloat16 dot products (Cooper Lake, Sapphire Rapids, Zen 4
/// and later). If not, all kernels use their reference implementation, except float32 tiles.
bool has_avx512();

/// Whether, in addition to has_avx512(), the processor has matrix tiles of bfloat16 (AMX; Sapphire Rapids and later)
/// and the operating system grants them to this process.
bool has_amx();

}  // namespace carillon::kernels
