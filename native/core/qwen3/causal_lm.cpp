#include "core/qwen3/causal_lm.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <set>

#include "core/runtime/error.h"
#include "kernels/linear.h"

namespace carillon {

KvCache::KvCache(const Qwen3Config& config, const Placement& placement, int64_t rows, int64_t max_tokens)
    : lengths_(static_cast<size_t>(rows), 0) {
  const auto options = at::TensorOptions().device(placement.device).dtype(placement.dtype);
  const int64_t layers = config.num_hidden_layers, heads = config.num_key_value_heads, dim = config.head_dim;
  data_ = placement.device.is_cuda() ? at::zeros({layers, 2, rows, max_tokens, heads, dim}, options).transpose(3, 4)
                                     : at::empty({layers, 2, rows, heads, max_tokens, dim}, options);
}

int64_t KvCache::length(int64_t row) const {
  if (row < 0 || row >= rows()) {
    fail(ErrorCode::kBadArgument,
         "the cache has " + std::to_string(rows()) + " rows, there is no row " + std::to_string(row));
  }
  return lengths_[static_cast<size_t>(row)];
}

void KvCache::copy_row(int64_t from, int64_t to) {
  if (from == to) return;
  const int64_t used = length(from);
  truncate(to, 0);
  data_.select(2, to).narrow(3, 0, used).copy_(data_.select(2, from).narrow(3, 0, used));
  lengths_[static_cast<size_t>(to)] = used;
}

void KvCache::truncate(int64_t row, int64_t length) {
  if (length < 0 || length > this->length(row)) {
    fail(ErrorCode::kBadArgument, "row " + std::to_string(row) + " has " + std::to_string(this->length(row)) +
                                      " tokens and cannot be cut to " + std::to_string(length));
  }
  lengths_[static_cast<size_t>(row)] = length;
}

void KvCache::extend(int64_t row, int64_t tokens) { lengths_[static_cast<size_t>(row)] += tokens; }

namespace {

/// Consecutive inputs with consecutive cache rows of equal length. One attention call computes all of them.
struct Span {
  int64_t first_input;
  int64_t first_row;
  int64_t count;
  int64_t length;  // tokens already in the cache
};

std::vector<Span> make_spans(c10::ArrayRef<int64_t> rows, const KvCache& cache) {
  std::vector<Span> spans;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t length = cache.length(rows[i]);
    if (!spans.empty() && spans.back().first_row + spans.back().count == rows[i] && spans.back().length == length) {
      ++spans.back().count;
    } else {
      spans.push_back({static_cast<int64_t>(i), rows[i], 1, length});
    }
  }
  return spans;
}

void check_feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, const KvCache& cache) {
  if (ids.dim() != 2 || ids.size(0) != static_cast<int64_t>(rows.size()) || ids.numel() == 0) {
    fail(ErrorCode::kBadArgument, "token ids must be [n, t] for n cache rows, with n and t at least 1");
  }
  if (std::set<int64_t>(rows.begin(), rows.end()).size() != rows.size()) {
    fail(ErrorCode::kBadArgument, "the same cache row is given twice in one call");
  }
  for (const int64_t row : rows) {
    if (cache.length(row) + ids.size(1) > cache.max_tokens()) {
      fail(ErrorCode::kBadArgument, "row " + std::to_string(row) + " holds " + std::to_string(cache.length(row)) +
                                        " tokens; " + std::to_string(ids.size(1)) + " more exceed the context of " +
                                        std::to_string(cache.max_tokens()));
    }
  }
}

/// Rotary table for the new tokens. All inputs share one table if their cache rows have equal length. Otherwise each
/// input has a table.
nn::Rotary rotary_of(const nn::Rotary& all, const std::vector<Span>& spans, int64_t inputs, int64_t tokens) {
  if (spans.size() == 1) return all.slice(spans[0].length, tokens);
  const at::Tensor first = at::empty({inputs, 1}, at::kLong);
  for (const Span& span : spans) first.narrow(0, span.first_input, span.count).fill_(span.length);
  return all.at(first + at::arange(tokens, at::kLong));
}

/// Stores the new keys and values of one layer in the cache, then computes attention over all cached positions.
at::Tensor cached_attention(const nn::SelfAttention::Heads& heads, const std::vector<Span>& spans,
                            const at::Tensor& keys, const at::Tensor& values) {
  const int64_t tokens = heads.q.size(2);
  std::vector<at::Tensor> outputs;
  for (const Span& span : spans) {
    const auto used = [&](const at::Tensor& cache, const at::Tensor& fresh) {
      const at::Tensor rows = cache.narrow(0, span.first_row, span.count);
      rows.narrow(2, span.length, tokens).copy_(fresh.narrow(0, span.first_input, span.count));
      return rows.narrow(2, 0, span.length + tokens);
    };
    outputs.push_back(nn::attention(heads.q.narrow(0, span.first_input, span.count), used(keys, heads.k),
                                    used(values, heads.v), {.causal = true}));
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs);
}

}  // namespace

CausalLm CausalLm::load(const ModelSource& source, const Placement& placement, const Control& control) {
  const Qwen3Config config = Qwen3Config::read(source);
  const Checkpoint checkpoint = Checkpoint::open(source);
  checkpoint.require_memory(placement);
  const Weights weights = checkpoint.weights(placement).for_decoding();
  CausalLm model;
  model.stack_ = Qwen3Stack::load(weights, config, control);
  model.head_ = weights.has("lm_head.weight")
                    ? weights.at_least_int8().matrix("lm_head.weight", config.vocab_size, config.hidden_size)
                    : model.stack_.embeddings;
  model.placement_ = placement;
  model.unused_tensors_ = checkpoint.unused();
  model.rotary_ = nn::Rotary::make(config.max_position_embeddings, config.head_dim, config.rope_theta, placement);
  return model;
}

KvCache CausalLm::make_cache(int64_t rows, int64_t max_tokens) const {
  if (rows < 1 || max_tokens < 1 || max_tokens > config().max_position_embeddings) {
    fail(ErrorCode::kBadArgument, "a cache needs at least one row and 1 .. " +
                                      std::to_string(config().max_position_embeddings) + " tokens, not " +
                                      std::to_string(rows) + " rows of " + std::to_string(max_tokens));
  }
  return KvCache(config(), placement_, rows, max_tokens);
}

int64_t CausalLm::cache_bytes_per_token() const {
  return config().num_hidden_layers * 2 * config().num_key_value_heads * config().head_dim *
         static_cast<int64_t>(c10::elementSize(placement_.dtype));
}

at::Tensor CausalLm::forward(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const {
  check_feed(ids, rows, cache);
  const std::vector<Span> spans = make_spans(rows, cache);
  const nn::Rotary rotary = rotary_of(rotary_, spans, ids.size(0), ids.size(1));
  at::Tensor x = stack_.embed(ids);
  for (size_t i = 0; i < stack_.layers.size(); ++i) {
    const nn::EncoderLayer& layer = stack_.layers[i];
    const auto heads = layer.self_attn.heads(layer.input_layernorm(x), rotary);
    const auto index = static_cast<int64_t>(i);
    x = x + layer.self_attn.o(cached_attention(heads, spans, cache.keys(index), cache.values(index)));
    x = x + layer.mlp(layer.post_attention_layernorm(x));
  }
  for (const int64_t row : rows) cache.extend(row, ids.size(1));
  return x;
}

at::Tensor CausalLm::step(const at::Tensor& ids, const at::Tensor& positions, KvCache& cache) const {
  const at::AutoDispatchBelowADInplaceOrView inference;
  const int64_t rows = cache.rows(), capacity = cache.max_tokens();
  const at::Tensor slots = at::arange(0, rows * capacity, capacity, positions.options()) + positions;
  const auto visible = nn::VisibleKeys::of(positions + 1, cache.keys(0), config().num_attention_heads);
  const nn::Rotary rotary = rotary_.at(positions.unsqueeze(1));
  const auto store = [&](const at::Tensor& kept, const at::Tensor& fresh) {
    kept.transpose(1, 2).view({rows * capacity, kept.size(1), kept.size(3)}).index_copy_(0, slots, fresh.squeeze(2));
  };
  at::Tensor x = stack_.embeddings.gather(ids.unsqueeze(1), stack_.norm.weight.scalar_type());
  for (size_t i = 0; i < stack_.layers.size(); ++i) {
    const nn::EncoderLayer& layer = stack_.layers[i];
    const auto heads = layer.self_attn.heads(layer.input_layernorm(x), rotary);
    const at::Tensor keys = cache.keys(static_cast<int64_t>(i)), values = cache.values(static_cast<int64_t>(i));
    store(keys, heads.k);
    store(values, heads.v);
    x = x + layer.self_attn.o(nn::cached_attention(heads.q, keys, values, visible));
    x = x + layer.mlp(layer.post_attention_layernorm(x));
  }
  return stack_.norm(x.squeeze(1));
}

at::Tensor CausalLm::feed(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const {
  const at::AutoDispatchBelowADInplaceOrView inference;  // disables gradients without creating inference tensors
  return stack_.norm(forward(ids, rows, cache).select(1, ids.size(-1) - 1));
}

at::Tensor CausalLm::feed_all(const at::Tensor& ids, c10::ArrayRef<int64_t> rows, KvCache& cache) const {
  const at::AutoDispatchBelowADInplaceOrView inference;
  return stack_.norm(forward(ids, rows, cache));
}

at::Tensor CausalLm::logits(const at::Tensor& hidden) const { return logits(hidden, 0, config().vocab_size); }

at::Tensor CausalLm::logits(const at::Tensor& hidden, int64_t first, int64_t count) const {
  const at::AutoDispatchBelowADInplaceOrView inference;
  if (first < 0 || count < 1 || first + count > config().vocab_size) {
    fail(ErrorCode::kBadArgument, "logits of ids " + std::to_string(first) + " .. " +
                                      std::to_string(first + count - 1) + " were requested, but the vocabulary has " +
                                      std::to_string(config().vocab_size) + " ids");
  }
  return kernels::linear(hidden, head_.rows(first, count), {}).to(at::kFloat);
}

}  // namespace carillon
