#pragma once
#include <ATen/core/Tensor.h>

namespace carillon::kernels {

/// Attention of one position: softmax(q k^T / sqrt(D)) v, with the query heads of a group as queries of one key head.
/// q [B, Nkv, G, D], k and v [B, Nkv, S, D] (views with contiguous D) -> [B, Nkv, G, D].
/// Bfloat16 CPU tensors on a machine with AVX512-BF16, with D a multiple of 32, read each key and value once;
/// all else, and whatever has to be differentiated, is decode_attention_reference.
at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// The same by libtorch.
at::Tensor decode_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace carillon::kernels
