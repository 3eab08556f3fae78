#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// Attention of one position: softmax(q * k^T / sqrt(D)) * v. q [B, Nkv, G, D] holds the G query heads of each key
/// head. k and v [B, Nkv, S, D] are views with contiguous D. Returns [B, Nkv, G, D]. Kernels read
/// each key and value once: of bfloat16 on CPUs with AVX512-BF16, of float32 with AVX2 or NEON. They need CPU tensors,
/// no gradients, and D a multiple of 32; other inputs use decode_attention_reference.
at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// Reference for the kernel, computed by libtorch.
at::Tensor decode_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace carillon::kernels
