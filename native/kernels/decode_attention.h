#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// Attention of one position: softmax(q k^T / sqrt(D)) v. The G query heads that share a key head are passed as its G
/// queries. q [B, Nkv, G, D], k and v [B, Nkv, S, D] (views with contiguous D) -> [B, Nkv, G, D]. With AVX512-BF16,
/// bfloat16 CPU tensors with D a multiple of 32 read each key and value once; all others, and inputs that require
/// gradients, use decode_attention_reference.
at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// Reference for the kernel, computed by libtorch.
at::Tensor decode_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace carillon::kernels
