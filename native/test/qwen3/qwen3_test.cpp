#include <ATen/ATen.h>

#include <atomic>
#include <cmath>

#include "core/lm/score.h"
#include "core/qwen3/causal_lm.h"
#include "core/qwen3/qwen3.h"
#include "core/runtime/error.h"
#include "test/differences.h"
#include "test/tiny_qwen3.h"

using namespace carillon;
using test::largest_difference;

namespace {

const Placement kFloat32{at::kCPU, at::kFloat};
constexpr int64_t kVocabulary = test::kTinyQwen3.vocabulary, kHidden = test::kTinyQwen3.hidden;
constexpr int64_t kHeads = test::kTinyQwen3.heads, kKvHeads = test::kTinyQwen3.kv_heads,
                  kDim = test::kTinyQwen3.head_dim;
constexpr int64_t kLayers = test::kTinyQwen3.layers;

CausalLm load(const test::Tensors& tensors) { return CausalLm::load(test::write_qwen3(tensors), kFloat32, Control()); }

/// Computes one sequence in double precision by the reference formulas. Returns [T, H] after the final norm.
at::Tensor plain_forward(const test::Tensors& tensors, const std::vector<int64_t>& ids) {
  const auto get = [&](const std::string& name) { return tensors.at(name).to(at::kDouble); };
  const auto rms = [](const at::Tensor& x, const at::Tensor& w) {
    return x / (x.square().mean(-1, true) + 1e-6).sqrt() * w;
  };
  const auto length = static_cast<int64_t>(ids.size());
  const at::Tensor frequencies = at::pow(10000.0, -at::arange(0, kDim, 2, at::kDouble) / static_cast<double>(kDim));
  const at::Tensor angles = at::outer(at::arange(length, at::kDouble), frequencies).unsqueeze(1);
  const auto rotate = [&](const at::Tensor& x) {
    const auto halves = x.chunk(2, -1);
    return at::cat(
        {halves[0] * angles.cos() - halves[1] * angles.sin(), halves[1] * angles.cos() + halves[0] * angles.sin()}, -1);
  };
  at::Tensor x = get("embed_tokens.weight").index_select(0, at::tensor(ids, at::kLong));
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    const at::Tensor h = rms(x, get(layer + "input_layernorm.weight"));
    const auto heads = [&](const std::string& name, int64_t count) {
      return at::matmul(h, get(layer + "self_attn." + name + ".weight").t()).view({length, count, kDim});
    };
    const at::Tensor q = rotate(rms(heads("q_proj", kHeads), get(layer + "self_attn.q_norm.weight"))).transpose(0, 1);
    const at::Tensor k = rotate(rms(heads("k_proj", kKvHeads), get(layer + "self_attn.k_norm.weight")))
                             .repeat_interleave(2, 1)
                             .transpose(0, 1);
    const at::Tensor v = heads("v_proj", kKvHeads).repeat_interleave(2, 1).transpose(0, 1);
    const at::Tensor future = at::ones({length, length}, at::kBool).triu(1);
    const at::Tensor weights =
        at::softmax((at::matmul(q, k.transpose(1, 2)) / std::sqrt(8.0)).masked_fill(future, -INFINITY), -1);
    const at::Tensor attended = at::matmul(weights, v).transpose(0, 1).reshape({length, kHeads * kDim});
    x = x + at::matmul(attended, get(layer + "self_attn.o_proj.weight").t());
    const at::Tensor z = rms(x, get(layer + "post_attention_layernorm.weight"));
    const at::Tensor gate = at::silu(at::matmul(z, get(layer + "mlp.gate_proj.weight").t()));
    x = x + at::matmul(gate * at::matmul(z, get(layer + "mlp.up_proj.weight").t()),
                       get(layer + "mlp.down_proj.weight").t());
  }
  return rms(x, get("norm.weight"));
}

at::Tensor ids_of(const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); }

/// Hidden state after feeding `ids` alone in one pass.
at::Tensor alone(const CausalLm& model, const std::vector<int64_t>& ids) {
  KvCache cache = model.make_cache(1, 64);
  return model.feed(ids_of(ids), {0}, cache);
}

const std::vector<int64_t> kIds = {3, 14, 15, 9, 2, 6, 5, 35, 8, 49};

}  // namespace

TEST("qwen3: prefill and decoding through the cache follow the formulas") {
  const auto tensors = test::tiny_qwen3_weights("");
  const auto model = load(tensors);
  const at::Tensor expected = plain_forward(tensors, kIds);
  KvCache whole = model.make_cache(1, 16), stepwise = model.make_cache(1, 16);
  EXPECT(largest_difference(model.feed_all(ids_of(kIds), {0}, whole)[0], expected) < 1e-4);
  for (size_t i = 0; i < kIds.size(); ++i) {
    const at::Tensor hidden = model.feed(ids_of({kIds[i]}), {0}, stepwise);
    EXPECT(largest_difference(hidden[0], expected[static_cast<int64_t>(i)]) < 1e-4);
  }
  EXPECT_EQ(stepwise.length(0), 10);
}

TEST("qwen3: feeding a prompt in two calls equals one call") {
  const auto model = load(test::tiny_qwen3_weights(""));
  KvCache cache = model.make_cache(1, 16);
  model.feed(ids_of({3, 14, 15, 9}), {0}, cache);
  EXPECT(largest_difference(model.feed(ids_of({2, 6, 5, 35, 8, 49}), {0}, cache), alone(model, kIds)) < 1e-5);
}

TEST("qwen3: rows of different lengths give the same states together as alone") {
  const auto model = load(test::tiny_qwen3_weights(""));
  KvCache cache = model.make_cache(4, 32);
  model.feed(ids_of({1, 2, 3}), {0}, cache);
  model.feed(ids_of({4, 5, 6, 7, 8, 9, 10}), {2}, cache);
  model.feed(ids_of({20, 21, 22}), {1}, cache);
  const at::Tensor together = model.feed(at::tensor({11, 13, 12}, at::kLong).view({3, 1}), {2, 0, 1}, cache);
  EXPECT(largest_difference(together[0], alone(model, {4, 5, 6, 7, 8, 9, 10, 11})[0]) < 1e-5);
  EXPECT(largest_difference(together[1], alone(model, {1, 2, 3, 13})[0]) < 1e-5);
  EXPECT(largest_difference(together[2], alone(model, {20, 21, 22, 12})[0]) < 1e-5);
  const at::Tensor forced = model.feed(at::tensor({30, 31, 32, 33}, at::kLong).view({2, 2}), {0, 2}, cache);
  EXPECT(largest_difference(forced[0], alone(model, {1, 2, 3, 13, 30, 31})[0]) < 1e-5);
  EXPECT(largest_difference(forced[1], alone(model, {4, 5, 6, 7, 8, 9, 10, 11, 32, 33})[0]) < 1e-5);
  EXPECT_EQ(cache.length(3), 0);
}

TEST("qwen3: a copied cache row gives the same logits as its source, and is independent of it") {
  const auto model = load(test::tiny_qwen3_weights(""));
  KvCache cache = model.make_cache(2, 16);
  model.feed(ids_of({7, 7, 7, 7, 7}), {1}, cache);
  model.feed(ids_of({1, 2, 3}), {0}, cache);
  cache.copy_row(0, 1);
  EXPECT_EQ(cache.length(1), 3);
  const at::Tensor hidden = model.feed(at::tensor({4, 5}, at::kLong).view({2, 1}), {0, 1}, cache);
  EXPECT(largest_difference(hidden[0], alone(model, {1, 2, 3, 4})[0]) < 1e-5);
  EXPECT(largest_difference(hidden[1], alone(model, {1, 2, 3, 5})[0]) < 1e-5);
}

TEST("qwen3: a truncated row forgets later tokens") {
  const auto model = load(test::tiny_qwen3_weights(""));
  KvCache cache = model.make_cache(1, 16);
  model.feed(ids_of({1, 2, 3, 4, 5}), {0}, cache);
  cache.truncate(0, 2);
  EXPECT(largest_difference(model.feed(ids_of({9}), {0}, cache), alone(model, {1, 2, 9})) < 1e-5);
  EXPECT_THROWS(cache.truncate(0, 4), "row 0 has 3 tokens and cannot be cut to 4");
}

TEST("qwen3: a slice of the head gives the logits of the whole head") {
  const auto model = load(test::tiny_qwen3_weights(""));
  const at::Tensor hidden = alone(model, kIds);
  const at::Tensor whole = model.logits(hidden);
  EXPECT_EQ(whole.size(-1), kVocabulary);
  EXPECT(whole.scalar_type() == at::kFloat);
  EXPECT(largest_difference(model.logits(hidden, 10, 25), whole.narrow(-1, 10, 25)) < 1e-6);
  EXPECT_THROWS(model.logits(hidden, 40, 11), "logits of ids 40 .. 50 were requested, but the vocabulary has 50 ids");
}

TEST("qwen3: accepts names with the prefix 'model.', and lm_head.weight replaces the tied head") {
  auto tensors = test::tiny_qwen3_weights("");
  const auto plain = load(tensors);
  test::Tensors prefixed;
  for (const auto& [name, tensor] : tensors) prefixed["model." + name] = tensor;
  EXPECT_EQ(largest_difference(alone(load(prefixed), kIds), alone(plain, kIds)), 0.0);

  prefixed["lm_head.weight"] = at::randn({kVocabulary, kHidden});
  const auto untied = load(prefixed);
  const at::Tensor hidden = alone(untied, kIds);
  EXPECT(largest_difference(untied.logits(hidden), at::matmul(hidden, prefixed["lm_head.weight"].t())) < 1e-4);
}

TEST("qwen3: bfloat16 is close to float32") {
  const auto tensors = test::tiny_qwen3_weights("");
  const auto narrow = CausalLm::load(test::write_qwen3(tensors), {at::kCPU, at::kBFloat16}, Control());
  const at::Tensor wide = alone(load(tensors), kIds), close = alone(narrow, kIds).to(at::kFloat);
  EXPECT(((wide - close).norm() / wide.norm()).item<double>() < 2e-2);
}

TEST("score: log-probabilities and ranks of given texts follow the formulas") {
  const test::Tensors tensors = test::tiny_qwen3_weights("");
  const CausalLm model = load(tensors);
  const std::vector<int32_t> prompt{3, 1, 4, 1, 5};
  std::vector<int32_t> longer;
  for (int32_t i = 0; i < 40; ++i) longer.push_back(i * 7 % static_cast<int32_t>(kVocabulary));
  const std::vector<std::vector<int32_t>> targets{{9, 2}, longer, {9, 2}};
  const auto all = score(model, prompt, targets, 64, Control());
  EXPECT_EQ(all.size(), targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<int64_t> ids(prompt.begin(), prompt.end());
    ids.insert(ids.end(), targets[i].begin(), targets[i].end());
    const at::Tensor hidden = plain_forward(tensors, ids);
    const at::Tensor logits = at::matmul(hidden, tensors.at("embed_tokens.weight").to(at::kDouble).t());
    const at::Tensor expected = at::log_softmax(logits, 1);
    EXPECT_EQ(all[i].ranks.size(), targets[i].size());
    for (size_t at = 0; at < targets[i].size(); ++at) {
      const auto place = static_cast<int64_t>(prompt.size() + at) - 1;
      const double own = expected[place][targets[i][at]].item<double>();
      EXPECT_NEAR(all[i].log_probabilities[at], own, 1e-3);
      const at::Tensor clearly = expected[place] > own + 1e-3, perhaps = expected[place] > own - 1e-3;
      EXPECT(all[i].ranks[at] > clearly.sum().item<int64_t>() && all[i].ranks[at] <= perhaps.sum().item<int64_t>());
    }
  }
  EXPECT_THROWS(score(model, prompt, {{}}, 64, Control()), "has no tokens");
  EXPECT_THROWS(score(model, prompt, {longer}, 44, Control()), "45 tokens, but the limit of the language model is 44");
}

TEST("qwen3: rejects invalid input before changing the cache") {
  const auto model = load(test::tiny_qwen3_weights(""));
  KvCache cache = model.make_cache(2, 4);
  model.feed(ids_of({1, 2, 3}), {0}, cache);
  EXPECT_THROWS(model.feed(ids_of({50}), {0}, cache), "token id 50 is outside the vocabulary of 50");
  EXPECT_THROWS(model.feed(ids_of({-1}), {0}, cache), "token id -1 is outside");
  EXPECT_THROWS(model.feed(ids_of({1, 2}), {0}, cache), "row 0 holds 3 tokens; 2 more exceed the context of 4");
  EXPECT_THROWS(model.feed(ids_of({1}), {2}, cache), "the cache has 2 rows, there is no row 2");
  EXPECT_THROWS(model.feed(at::zeros({2, 1}, at::kLong), {1, 1}, cache), "the same cache row is given twice");
  EXPECT_THROWS(model.feed(at::zeros({2, 1}, at::kLong), {1}, cache), "token ids must be [n, t]");
  EXPECT_EQ(cache.length(0), 3);
  EXPECT(largest_difference(model.feed(ids_of({4}), {0}, cache), alone(model, {1, 2, 3, 4})) < 1e-5);
  EXPECT_THROWS(model.make_cache(0, 4), "at least one row");
  EXPECT_THROWS(model.make_cache(1, 65), "1 .. 64 tokens");
}

TEST("qwen3: names a missing or mis-shaped tensor") {
  auto tensors = test::tiny_qwen3_weights("");
  tensors["layers.1.mlp.down_proj.weight"] = at::zeros({kHidden, 41});
  EXPECT_THROWS(load(tensors), "'layers.1.mlp.down_proj.weight' has shape [24, 41], expected [24, 40]");
  tensors.erase("layers.1.self_attn.q_norm.weight");
  EXPECT_THROWS(load(tensors), "'layers.1.self_attn.q_norm.weight' is missing");
}

TEST("qwen3: loading reports its layers and can be cancelled") {
  const std::string directory = test::write_qwen3(test::tiny_qwen3_weights(""));
  std::atomic<bool> cancelled = false;
  int64_t last = -1;
  CausalLm::load(directory, kFloat32, Control(&cancelled, [&](const Progress& progress) { last = progress.done; }));
  EXPECT_EQ(last, kLayers);
  cancelled = true;
  EXPECT_THROWS(CausalLm::load(directory, kFloat32, Control(&cancelled, nullptr)), "cancelled");
}

TEST("text encoder: hidden states follow the formulas and ignore right padding") {
  const auto tensors = test::tiny_qwen3_weights("");
  const auto encoder = TextEncoder::load(test::write_qwen3(tensors), kFloat32, Control());
  EXPECT(largest_difference(encoder.encode(ids_of(kIds))[0], plain_forward(tensors, kIds)) < 1e-4);
  const at::Tensor padded = encoder.encode(ids_of({3, 14, 15, 0, 0}));
  EXPECT(largest_difference(padded.narrow(1, 0, 3), encoder.encode(ids_of({3, 14, 15}))) < 1e-5);
  const at::Tensor several = encoder.encode(ids_of({3, 14, 15, 9, 2}), {3, 2});
  EXPECT(at::equal(several.narrow(1, 0, 3), encoder.encode(ids_of({3, 14, 15}))));
  EXPECT(at::equal(several.narrow(1, 3, 2), encoder.encode(ids_of({9, 2}))));
  EXPECT(at::equal(encoder.embed(ids_of({4, 4, 1}))[0][2], tensors.at("embed_tokens.weight")[1]));
  EXPECT_THROWS(encoder.encode(ids_of({50})), "outside the vocabulary");
  EXPECT_THROWS(encoder.encode(at::zeros({1, 65}, at::kLong)), "a text must have 1 .. 64 tokens, not 65");
  EXPECT_THROWS(encoder.encode(at::zeros({4}, at::kLong)), "must be [B, T]");
}
