#include "core/nn/attention.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/decode_attention.h"

namespace carillon::nn {

namespace {

/// Sequences of more than this many windows use blocked attention, which reads only 3 windows of keys for each query.
constexpr int64_t kDenseWindows = 4;

/// Additive mask: the lowest float for hidden pairs, 0 for visible ones.
at::Tensor additive_mask(const at::Tensor& visible, at::ScalarType dtype) {
  const double lowest = dtype == at::kBFloat16 ? static_cast<double>(std::numeric_limits<at::BFloat16>::lowest())
                                               : static_cast<double>(std::numeric_limits<float>::lowest());
  return at::zeros(visible.sizes(), visible.options().dtype(dtype)).masked_fill_(visible.logical_not(), lowest);
}

/// Repeats each head of k or v [B, Nkv, S, D] for all query heads of its group. Returns [B, Nq, S, D].
at::Tensor expand_heads(const at::Tensor& x, int64_t num_heads) {
  const int64_t group = num_heads / x.size(1);
  if (group == 1) return x;
  return x.unsqueeze(2).expand({-1, -1, group, -1, -1}).reshape({x.size(0), num_heads, x.size(2), x.size(3)});
}

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::optional<at::Tensor>& mask, bool causal) {
  // On CUDA only the flash kernel supports grouped heads. It needs a 16-bit type and no mask. Other kernels would use a
  // slow fallback for grouped heads.
  const bool flash = !mask && q.scalar_type() != at::kFloat && at::globalContext().userEnabledFlashSDP();
  const bool grouped = !q.is_cuda() || flash;
  if (grouped || q.size(1) == k.size(1)) {
    return at::scaled_dot_product_attention(q, k, v, mask, 0.0, causal, std::nullopt, q.size(1) != k.size(1));
  }
  return at::scaled_dot_product_attention(q, expand_heads(k, q.size(1)), expand_heads(v, q.size(1)), mask, 0.0, causal);
}

/// Whether libtorch uses the flash kernel for q [B, Nq, Sq, D] and k [B, Nkv, Sk, D] without a mask: on GPUs of Ampere
/// or later, for 16-bit types.
bool takes_flash(const at::Tensor& q, const at::Tensor& k) {
  return q.is_cuda() &&
         at::_fused_sdp_choice(q, k, k, std::nullopt, 0.0, false, std::nullopt, q.size(1) != k.size(1)) ==
             static_cast<int64_t>(at::SDPBackend::flash_attention);
}

/// Whether a query sees a key: bool [1 or B, 1, Sq, Sk].
at::Tensor visible_pairs(const at::Tensor& q, const at::Tensor& k, const AttentionPattern& pattern) {
  const auto positions = q.options().dtype(at::kLong);
  const at::Tensor queries = at::arange(k.size(2) - q.size(2), k.size(2), positions).unsqueeze(1);
  const at::Tensor distance = at::arange(k.size(2), positions) - queries;  // j - i
  at::Tensor visible;
  if (pattern.causal) {
    visible = distance <= 0;
  } else if (pattern.window > 0) {
    visible = pattern.window_is_one_sided ? distance >= -pattern.window : distance.abs() <= pattern.window;
  }
  if (visible.defined()) visible = visible.view({1, 1, q.size(2), k.size(2)});
  if (!pattern.key_mask.defined()) return visible;
  const at::Tensor keys = pattern.key_mask.to(q.device(), at::kBool).view({-1, 1, 1, k.size(2)});
  return visible.defined() ? keys.logical_and(visible) : keys.expand({-1, 1, q.size(2), k.size(2)});
}

/// Splits queries and keys into blocks of `window` positions. Each block of queries attends to the same block of keys
/// and its two neighbours.
at::Tensor blocked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window) {
  const int64_t batch = q.size(0), length = q.size(2), dim = q.size(3);
  const int64_t blocks = (length + window - 1) / window, tail = blocks * window - length;
  const auto query_blocks = [&](const at::Tensor& x) {
    const at::Tensor padded =
        tail == 0 ? x.transpose(1, 2) : at::constant_pad_nd(x.transpose(1, 2), {0, 0, 0, 0, 0, tail});
    return padded.reshape({batch * blocks, window, x.size(1), dim}).transpose(1, 2);
  };
  const auto key_blocks = [&](const at::Tensor& x) {
    const at::Tensor padded = at::constant_pad_nd(x.transpose(1, 2), {0, 0, 0, 0, window, tail + window});
    return padded
        .unfold(1, 3 * window, window)  // [B, blocks, Nkv, D, 3 window]
        .transpose(3, 4)
        .reshape({batch * blocks, x.size(1), 3 * window, dim});
  };
  // A block has `window` queries and 3 * window keys. Its query i has the same position as its key window + i.
  const auto positions = q.options().dtype(at::kLong);
  const at::Tensor slot = at::arange(3 * window, positions);
  const at::Tensor band = (slot - at::arange(window, 2 * window, positions).unsqueeze(1)).abs() <= window;
  const at::Tensor key_position =
      at::arange(-1, blocks - 1, positions).unsqueeze(1) * window + slot;  // [blocks, 3 window]
  const at::Tensor real = key_position.ge(0).logical_and(key_position < length);
  // Queries past the end have no visible key; their results are cut off.
  const at::Tensor mask = additive_mask(real.view({blocks, 1, 1, 3 * window}).logical_and(band), q.scalar_type());
  const at::Tensor out =
      fused_attention(query_blocks(q), key_blocks(k), key_blocks(v), mask.repeat({batch, 1, 1, 1}), false);
  return out.transpose(1, 2).reshape({batch, blocks * window, -1}).narrow(1, 0, length);
}

/// Attends with the flash kernel, which implements the window itself and needs neither a mask nor repeated heads.
at::Tensor flash_window(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const AttentionPattern& pattern) {
  const std::optional<int64_t> after = pattern.window_is_one_sided ? std::nullopt : std::optional(pattern.window);
  const at::Tensor out = std::get<0>(
      at::_flash_attention_forward(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), std::nullopt, std::nullopt,
                                   q.size(2), k.size(2), 0.0, false, false, std::nullopt, pattern.window, after));
  return out.flatten(2);
}

/// Attends to keys up to the last visible key, so that padding costs no time and does not change the rounding.
at::Tensor attend_item(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, AttentionPattern pattern) {
  int64_t keys = k.size(2);
  if (pattern.key_mask.defined() && pattern.window == 0) {
    const int64_t visible = pattern.key_mask.sum().item<int64_t>();
    if (visible > 0 && pattern.key_mask.narrow(1, 0, visible).all().item<bool>()) {
      keys = visible;
      pattern.key_mask.reset();
    }
  }
  return attention(q, k.narrow(2, 0, keys), v.narrow(2, 0, keys), pattern);
}

at::Tensor attend_by_item(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, AttentionPattern pattern) {
  const at::Tensor mask = std::exchange(pattern.key_mask, {});
  pattern.by_item = false;
  std::vector<at::Tensor> items;
  for (int64_t item = 0; item < q.size(0); ++item) {
    const auto of_item = [&](const at::Tensor& x) { return x.narrow(0, item, 1); };
    if (mask.defined()) pattern.key_mask = of_item(mask);
    items.push_back(attend_item(of_item(q), of_item(k), of_item(v), pattern));
  }
  return at::cat(items);
}

at::Tensor attend_by_sequence(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, AttentionPattern pattern) {
  const std::vector<int64_t> lengths = std::exchange(pattern.lengths, {});
  std::vector<at::Tensor> sequences;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    const auto of_sequence = [&](const at::Tensor& x) { return x.narrow(2, first, length); };
    sequences.push_back(attention(of_sequence(q), of_sequence(k), of_sequence(v), pattern));
    first += length;
  }
  return at::cat(sequences, 1);
}

bool is_differentiated(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPattern& pattern) {
  if (pattern.lengths.size() > 1) return attend_by_sequence(q, k, v, pattern);
  if (pattern.by_item && q.is_cpu() && !is_differentiated(q, k, v)) return attend_by_item(q, k, v, pattern);
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2), dim = q.size(3);
  AttentionPattern needed = pattern;
  if (needed.window >= keys - 1) needed.window = 0;
  if (queries == 1) needed.causal = false;

  const bool masked = needed.window > 0 || needed.key_mask.defined() || (needed.causal && queries != keys);
  if (queries == 1 && !masked) {
    // The query heads of a group become queries of their key head. Each key and value is then read once.
    const at::Tensor grouped = q.reshape({batch, k.size(1), heads / k.size(1), dim});
    return kernels::decode_attention(grouped, k, v).reshape({batch, 1, heads * dim});
  }
  if (needed.window > 0 && !needed.key_mask.defined() && !is_differentiated(q, k, v) && takes_flash(q, k)) {
    return flash_window(q, k, v, needed);
  }
  const bool blocks = needed.window > 0 && !needed.window_is_one_sided && !needed.key_mask.defined();
  if (blocks && keys > kDenseWindows * needed.window) {
    return blocked_attention(q, k, v, needed.window);
  }
  std::optional<at::Tensor> mask;
  if (masked) mask = additive_mask(visible_pairs(q, k, needed), q.scalar_type());
  return fused_attention(q, k, v, mask, needed.causal && !masked)
      .transpose(1, 2)
      .reshape({batch, queries, heads * dim});
}

VisibleKeys VisibleKeys::of(const at::Tensor& counts, const at::Tensor& keys, int64_t num_heads) {
  VisibleKeys visible{counts.to(at::kInt), {}, {}, {}};
  const int64_t rows = keys.size(0), length = keys.size(2);
  if (takes_flash(keys.new_empty({rows, num_heads, 1, keys.size(3)}), keys)) {
    visible.query_starts = at::arange(rows + 1, visible.counts.options());
    visible.key_starts = visible.query_starts * length;
  } else {
    const at::Tensor seen = at::arange(length, visible.counts.options()) < visible.counts.unsqueeze(1);
    visible.mask = additive_mask(seen.view({rows, 1, 1, length}), keys.scalar_type());
  }
  return visible;
}

at::Tensor cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const VisibleKeys& visible) {
  const int64_t rows = q.size(0), heads = q.size(1), length = k.size(2), dim = q.size(3);
  if (visible.mask.defined()) {
    // The query heads of a group become queries of their key head. Each key and value is then read once.
    const at::Tensor grouped = q.reshape({rows, k.size(1), heads / k.size(1), dim});
    return at::scaled_dot_product_attention(grouped, k, v, visible.mask).reshape({rows, 1, heads * dim});
  }
  const auto one_after_another = [](const at::Tensor& x) { return x.transpose(1, 2).flatten(0, 1); };
  const at::Tensor out = std::get<0>(at::_flash_attention_forward(
      q.squeeze(2), one_after_another(k), one_after_another(v), visible.query_starts, visible.key_starts, 1, length,
      0.0, false, false, std::nullopt, std::nullopt, std::nullopt, visible.counts));
  return out.reshape({rows, 1, heads * dim});
}

SelfAttention SelfAttention::load(const Weights& weights, const AttentionSize& size) {
  const int64_t q_rows = size.num_heads * size.head_dim, kv_rows = size.num_kv_heads * size.head_dim;
  SelfAttention self;
  self.size = size;
  self.qkv = Linear::load_fused(weights, {"q_proj", "k_proj", "v_proj"}, size.hidden_size, {q_rows, kv_rows, kv_rows},
                                size.bias);
  self.o = Linear::load(weights.sub("o_proj"), q_rows, size.hidden_size, size.bias);
  const at::Tensor q_norm = weights.get("q_norm.weight", {size.head_dim}),
                   k_norm = weights.get("k_norm.weight", {size.head_dim});
  self.qk_norm = {at::cat({q_norm.expand({size.num_heads, -1}), k_norm.expand({size.num_kv_heads, -1})}),
                  size.rms_norm_eps};
  return self;
}

SelfAttention::Heads SelfAttention::heads(const at::Tensor& x, const Rotary& rotary) const {
  const int64_t rotated = size.num_heads + size.num_kv_heads;
  const at::Tensor all = qkv(x).view({x.size(0), x.size(1), rotated + size.num_kv_heads, size.head_dim});
  const at::Tensor qk = apply_rotary(qk_norm(all.narrow(2, 0, rotated)), rotary);
  return {qk.narrow(2, 0, size.num_heads).transpose(1, 2),
          qk.narrow(2, size.num_heads, size.num_kv_heads).transpose(1, 2),
          all.narrow(2, rotated, size.num_kv_heads).transpose(1, 2)};
}

at::Tensor SelfAttention::operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const {
  const Heads all = heads(x, rotary);
  return o(attention(all.q, all.k, all.v, pattern));
}

CrossAttention CrossAttention::load(const Weights& weights, const AttentionSize& size) {
  const int64_t q_rows = size.num_heads * size.head_dim, kv_rows = size.num_kv_heads * size.head_dim;
  return {size,
          Linear::load(weights.sub("q_proj"), size.hidden_size, q_rows, size.bias),
          Linear::load_fused(weights, {"k_proj", "v_proj"}, size.hidden_size, {kv_rows, kv_rows}, size.bias),
          Linear::load(weights.sub("o_proj"), q_rows, size.hidden_size, size.bias),
          RmsNorm::load(weights.sub("q_norm"), size.head_dim, size.rms_norm_eps),
          RmsNorm::load(weights.sub("k_norm"), size.head_dim, size.rms_norm_eps)};
}

CrossAttention::KeysValues CrossAttention::keys_values(const at::Tensor& context, const at::Tensor& key_mask) const {
  const at::Tensor all = kv(context).view({context.size(0), context.size(1), 2 * size.num_kv_heads, size.head_dim});
  return {k_norm(all.narrow(2, 0, size.num_kv_heads)).transpose(1, 2),
          all.narrow(2, size.num_kv_heads, size.num_kv_heads).transpose(1, 2), key_mask};
}

at::Tensor CrossAttention::queries(const at::Tensor& x) const {
  return q_norm(q(x).view({x.size(0), x.size(1), size.num_heads, size.head_dim})).transpose(1, 2);
}

at::Tensor CrossAttention::operator()(const at::Tensor& x, const KeysValues& context) const {
  return o(attention(queries(x), context.k, context.v, {.key_mask = context.key_mask, .by_item = true}));
}

at::Tensor CrossAttention::weights(const at::Tensor& x, const KeysValues& context, int64_t head) const {
  const at::Tensor q = queries(x).select(1, head).to(at::kFloat);
  const at::Tensor k = context.k.select(1, head / (size.num_heads / size.num_kv_heads)).to(at::kFloat);
  return (at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(size.head_dim))).softmax(2);
}

EncoderLayer EncoderLayer::load(const Weights& weights, const AttentionSize& size, int64_t intermediate_size) {
  return {RmsNorm::load(weights.sub("input_layernorm"), size.hidden_size, size.rms_norm_eps),
          SelfAttention::load(weights.sub("self_attn"), size),
          RmsNorm::load(weights.sub("post_attention_layernorm"), size.hidden_size, size.rms_norm_eps),
          SwiGlu::load(weights.sub("mlp"), size.hidden_size, intermediate_size)};
}

at::Tensor EncoderLayer::operator()(const at::Tensor& x, const Rotary& rotary, const AttentionPattern& pattern) const {
  const at::Tensor attended = x + self_attn(input_layernorm(x), rotary, pattern);
  return attended + mlp(post_attention_layernorm(attended));
}

}  // namespace carillon::nn
