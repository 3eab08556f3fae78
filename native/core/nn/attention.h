#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/nn/layers.h"

namespace carillon::nn {

/// Which keys each query sees. By default every query sees all keys.
struct AttentionPattern {
  bool causal = false;                // query i of Sq sees keys 0 .. Sk - Sq + i; excludes window and key_mask
  int64_t window = 0;                 // > 0: |i - j| <= window, both ways (Sq = Sk)
  bool window_is_one_sided = false;   // i - j <= window: all later keys are visible (DitConfig::one_sided_windows)
  at::Tensor key_mask = {};           // [B, Sk] bool, true = visible; undefined: all are visible (faster than all true)
  std::vector<int64_t> lengths = {};  // of concatenated sequences that do not see each other (B = 1, Sq = Sk)
  bool by_item = false;               // on a CPU, computes item by item, independent of the batch; slow for short Sq
};

/// Computes softmax(q * k^T / sqrt(D)) * v with grouped heads: query head h reads kv head h / (Nq / Nkv).
/// q [B, Nq, Sq, D], k and v [B, Nkv, Sk, D] -> [B, Sq, Nq * D]. The tensors may be views if D is contiguous.
/// A query without visible keys gets the mean of all values.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPattern& pattern);

/// Number of visible cached keys of each row. The numbers are on the device, so that shapes stay constant as rows grow.
struct VisibleKeys {
  at::Tensor counts;                    // int32 [B]
  at::Tensor query_starts, key_starts;  // int32 [B + 1], first query and key of each row; only for the flash kernel
  at::Tensor mask;                      // [B, 1, 1, S], added to the scores; undefined for the flash kernel

  /// Makes row b see its first counts[b] keys. `keys`: [B, Nkv, S, D]. `num_heads`: heads of the queries.
  static VisibleKeys of(const at::Tensor& counts, const at::Tensor& keys, int64_t num_heads);
};

/// Attention of one query per row: q [B, Nq, 1, D], k and v [B, Nkv, S, D] -> [B, 1, Nq * D].
at::Tensor cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const VisibleKeys& visible);

struct AttentionSize {
  int64_t hidden_size;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  double rms_norm_eps;
  bool bias;
};

/// Self-attention with QK-norm and rotary positions. Weights: {q,k,v,o}_proj, {q,k}_norm.
struct SelfAttention {
  AttentionSize size;
  Linear qkv;  // rows: q [Nq * D], k [Nkv * D], v [Nkv * D]
  Linear o;
  RmsNorm qk_norm;  // weight [Nq + Nkv, D]: q_norm for each q head, k_norm for each k head

  static SelfAttention load(const Weights& weights, const AttentionSize& size);

  struct Heads {
    at::Tensor q;     // [B, Nq, S, D]
    at::Tensor k, v;  // [B, Nkv, S, D]
  };
  /// Heads of x [B, S, H]: projected, normalised, rotated.
  Heads heads(const at::Tensor& x, const Rotary& rotary) const;

  /// x [B, S, H] -> [B, S, H].
  at::Tensor operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const;
};

/// Cross-attention with QK-norm and without positions. The weights have the same names as in SelfAttention.
struct CrossAttention {
  AttentionSize size;
  Linear q;
  Linear kv;  // rows: k [Nkv * D], v [Nkv * D]
  Linear o;
  RmsNorm q_norm, k_norm;

  static CrossAttention load(const Weights& weights, const AttentionSize& size);

  struct KeysValues {
    at::Tensor k, v;      // [B, Nkv, L, D]
    at::Tensor key_mask;  // [B, L] bool, true = visible; undefined: no key is hidden
  };
  /// Computes the keys and values of context [B, L, H]. Call it once, because the denoising steps share the context.
  KeysValues keys_values(const at::Tensor& context, const at::Tensor& key_mask = {}) const;

  /// x [B, S, H] -> [B, S, H].
  at::Tensor operator()(const at::Tensor& x, const KeysValues& context) const;
  /// Attention weights of `head`: softmax(q k^T / sqrt(D)), [B, S, L] float32, with all keys visible.
  at::Tensor weights(const at::Tensor& x, const KeysValues& context, int64_t head) const;

 private:
  at::Tensor queries(const at::Tensor& x) const;  // [B, Nq, S, D]
};

/// The pre-norm transformer layer that the condition encoder, the audio tokenizer and detokenizer and Qwen3 share:
///   x += attention(rms(x; input_layernorm));  x += mlp(rms(x; post_attention_layernorm))
struct EncoderLayer {
  RmsNorm input_layernorm;
  SelfAttention self_attn;
  RmsNorm post_attention_layernorm;
  SwiGlu mlp;

  static EncoderLayer load(const Weights& weights, const AttentionSize& size, int64_t intermediate_size);

  /// x [B, S, H] -> [B, S, H].
  at::Tensor operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const;
};

}  // namespace carillon::nn
