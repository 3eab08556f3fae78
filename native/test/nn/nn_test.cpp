#include <ATen/ATen.h>

#include <cmath>

#include "core/nn/attention.h"
#include "test/checkpoint_files.h"
#include "test/differences.h"
#include "test/test.h"

using namespace carillon;
using test::largest_difference;

namespace {

const Placement kFloat32{at::kCPU, at::kFloat};

struct Heads {
  at::Tensor q, k, v;
};

/// Random heads as a projection would output them: transposed views of [B, S, heads, D].
Heads random_heads(int64_t batch, int64_t queries, int64_t keys, int64_t heads = 4, int64_t kv_heads = 2,
                   int64_t dim = 8) {
  return {at::randn({batch, queries, heads, dim}).transpose(1, 2),
          at::randn({batch, keys, kv_heads, dim}).transpose(1, 2),
          at::randn({batch, keys, kv_heads, dim}).transpose(1, 2)};
}

/// Computes attention by its definition, in double: repeats the key heads and sets the scores of masked pairs to the
/// lowest float.
at::Tensor plain_attention(const Heads& x, const at::Tensor& visible) {
  const int64_t group = x.q.size(1) / x.k.size(1);
  const at::Tensor q = x.q.to(at::kDouble), k = x.k.to(at::kDouble).repeat_interleave(group, 1),
                   v = x.v.to(at::kDouble).repeat_interleave(group, 1);
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor hidden = visible.logical_not();
  const at::Tensor weights = at::softmax(scores.masked_fill(hidden, -1e38), -1);
  return at::matmul(weights, v).transpose(1, 2).reshape({q.size(0), q.size(2), -1});
}

at::Tensor offsets(int64_t queries, int64_t keys) {
  return at::arange(keys) - at::arange(keys - queries, keys).unsqueeze(1);  // j - i
}

Weights weights_of(const test::Tensors& tensors) {
  const std::string directory = test::fixture_directory();
  test::write_safetensors(directory + "/model.safetensors", tensors);
  return Checkpoint::open(directory).weights(kFloat32);
}

test::Tensors layer_tensors(int64_t hidden, int64_t heads, int64_t kv_heads, int64_t dim, int64_t intermediate) {
  return {{"input_layernorm.weight", at::rand({hidden})},
          {"self_attn.q_proj.weight", at::randn({heads * dim, hidden})},
          {"self_attn.k_proj.weight", at::randn({kv_heads * dim, hidden})},
          {"self_attn.v_proj.weight", at::randn({kv_heads * dim, hidden})},
          {"self_attn.o_proj.weight", at::randn({hidden, heads * dim})},
          {"self_attn.q_norm.weight", at::rand({dim})},
          {"self_attn.k_norm.weight", at::rand({dim})},
          {"post_attention_layernorm.weight", at::rand({hidden})},
          {"mlp.gate_proj.weight", at::randn({intermediate, hidden})},
          {"mlp.up_proj.weight", at::randn({intermediate, hidden})},
          {"mlp.down_proj.weight", at::randn({hidden, intermediate})}};
}

}  // namespace

TEST("nn: linear multiplies by the transposed weight and adds an optional bias") {
  const auto weights = weights_of({{"p.weight", at::randn({5, 3})}, {"p.bias", at::randn({5})}});
  const auto with = nn::Linear::load(weights.sub("p"), 3, 5, true),
             without = nn::Linear::load(weights.sub("p"), 3, 5, false);
  const at::Tensor x = at::randn({2, 4, 3});
  EXPECT(largest_difference(without(x), at::matmul(x, without.parts[0].data.t())) < 1e-6);
  EXPECT(largest_difference(with(x), without(x) + with.bias) < 1e-6);
  EXPECT_THROWS(nn::Linear::load(weights.sub("p"), 4, 5, true), "'p.weight' has shape [5, 3], expected [5, 4]");
}

TEST("nn: a fused projection equals its parts, and is a view of the file if they are adjacent there") {
  const auto weights = weights_of({{"a.weight", at::randn({4, 3})},
                                   {"a.bias", at::randn({4})},
                                   {"b.weight", at::randn({2, 3})},
                                   {"b.bias", at::randn({2})},
                                   {"gate.weight", at::randn({4, 3})},
                                   {"up.weight", at::randn({2, 3})}});
  const auto fused = nn::Linear::load_fused(weights, {"a", "b"}, 3, {4, 2}, true);
  const auto a = nn::Linear::load(weights.sub("a"), 3, 4, true), b = nn::Linear::load(weights.sub("b"), 3, 2, true);
  const at::Tensor x = at::randn({5, 3});
  EXPECT(largest_difference(fused(x), at::cat({a(x), b(x)}, -1)) < 1e-6);
  const auto gate = nn::Linear::load(weights.sub("gate"), 3, 4, false),
             up = nn::Linear::load(weights.sub("up"), 3, 2, false);
  const auto fused_of = [](const Weights& from) {
    return nn::Linear::load_fused(from, {"gate", "up"}, 3, {4, 2}, false);
  };
  const auto view = fused_of(weights), copy = fused_of(weights.for_decoding());
  EXPECT(view.parts[0].data.data_ptr() == gate.parts[0].data.data_ptr());
  EXPECT(copy.parts[0].data.data_ptr() != gate.parts[0].data.data_ptr());
  EXPECT(largest_difference(view(x), at::cat({gate(x), up(x)}, -1)) < 1e-6);
  EXPECT(at::equal(copy(x), view(x)));
  EXPECT_THROWS(nn::Linear::load_fused(weights, {"a", "b"}, 3, {4, 3}, true), "'b.bias' has shape [2], expected [3]");
}

TEST("nn: large projections that are not adjacent in the file stay views of it; small ones are copied") {
  for (const int64_t outputs : {1024, 16}) {
    const auto weights = weights_of({{"a.weight", at::randn({outputs, 1024})},
                                     {"a.bias", at::randn({outputs})},
                                     {"between.weight", at::randn({8, 8})},
                                     {"c.weight", at::randn({outputs, 1024})},
                                     {"c.bias", at::randn({outputs})}});
    const auto a = nn::Linear::load(weights.sub("a"), 1024, outputs, true);
    const auto c = nn::Linear::load(weights.sub("c"), 1024, outputs, true);
    const auto fused = nn::Linear::load_fused(weights, {"a", "c"}, 1024, {outputs, outputs}, true);
    const at::Tensor x = at::randn({3, 1024});
    EXPECT(largest_difference(fused(x), at::cat({a(x), c(x)}, -1)) < 1e-4);
    EXPECT_EQ(fused.outputs(), 2 * outputs);
    EXPECT(at::equal(fused.rows(outputs, 2).data, c.rows(0, 2).data));
    EXPECT_EQ(fused.parts.size(), outputs == 1024 ? 2u : 1u);
    if (outputs == 1024) EXPECT(fused.parts[1].data.data_ptr() == c.parts[0].data.data_ptr());
  }
}

TEST("nn: rms norm follows its formula; in bfloat16 it rounds before multiplying by the weight") {
  const at::Tensor x = at::randn({3, 64}), weight = at::randn({64});
  const at::Tensor unit = x / (x.square().mean(-1, true) + 1e-6).sqrt();
  EXPECT(largest_difference(nn::rms_norm(x, weight, 1e-6), unit * weight) < 1e-5);

  const at::Tensor x16 = x.to(at::kBFloat16), weight16 = weight.to(at::kBFloat16), wide = x16.to(at::kFloat);
  const at::Tensor rounded = (wide * (wide.square().mean(-1, true) + 1e-6).rsqrt()).to(at::kBFloat16) * weight16;
  const at::Tensor normed = nn::rms_norm(x16, weight16, 1e-6);
  EXPECT(normed.scalar_type() == at::kBFloat16);
  EXPECT(normed.eq(rounded).to(at::kFloat).mean().item<double>() > 0.99);  // float32 sums differ in the last bit
}

TEST("nn: rotary rotates each pair by position times frequency") {
  const auto rotary = nn::Rotary::make(6, 4, 100.0, kFloat32);
  const at::Tensor x = at::randn({1, 6, 1, 4});
  const at::Tensor turned = nn::apply_rotary(x, rotary);
  for (int64_t position = 0; position < 6; ++position) {
    for (int64_t j = 0; j < 2; ++j) {
      const double angle = static_cast<double>(position) * std::pow(100.0, -2.0 * static_cast<double>(j) / 4);
      const double a = x[0][position][0][j].item<double>(), b = x[0][position][0][j + 2].item<double>();
      EXPECT_NEAR(turned[0][position][0][j].item<double>(), a * std::cos(angle) - b * std::sin(angle), 1e-5);
      EXPECT_NEAR(turned[0][position][0][j + 2].item<double>(), b * std::cos(angle) + a * std::sin(angle), 1e-5);
    }
  }
}

TEST("nn: rotary tables looked up by position equal slices of the table") {
  const auto rotary = nn::Rotary::make(10, 8, 1e6, kFloat32);
  const at::Tensor x = at::randn({2, 3, 2, 8});
  const at::Tensor by_row = nn::apply_rotary(x, rotary.at(at::tensor({4, 5, 6, 1, 2, 3}, at::kLong).view({2, 3})));
  EXPECT_EQ(largest_difference(by_row[0], nn::apply_rotary(x.narrow(0, 0, 1), rotary.slice(4, 3))[0]), 0.0);
  EXPECT_EQ(largest_difference(by_row[1], nn::apply_rotary(x.narrow(0, 1, 1), rotary.slice(1, 3))[0]), 0.0);
}

TEST("nn: norm and rotary give the same values with and without autograd") {
  const auto rotary = nn::Rotary::make(5, 8, 100.0, kFloat32);
  const at::Tensor x = at::randn({2, 5, 3, 8}), weight = at::rand({3, 8});
  const at::Tensor tracked = x.clone().set_requires_grad(true);
  const at::Tensor normed = nn::rms_norm(tracked, weight, 1e-6), turned = nn::apply_rotary(tracked, rotary);
  EXPECT(normed.requires_grad() && turned.requires_grad());
  EXPECT(largest_difference(normed.detach(), nn::rms_norm(x, weight, 1e-6)) < 1e-6);
  EXPECT(largest_difference(turned.detach(), nn::apply_rotary(x, rotary)) < 1e-6);
}

TEST("nn: grouped-query attention follows its formula, full and causal") {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{7, 7}, {3, 9}, {1, 9}, {1, 1}}) {
    const Heads x = random_heads(2, queries, keys);
    const at::Tensor offset = offsets(queries, keys);
    EXPECT(largest_difference(nn::attention(x.q, x.k, x.v, {}), plain_attention(x, offset.eq(offset))) < 1e-5);
    EXPECT(largest_difference(nn::attention(x.q, x.k, x.v, {.causal = true}), plain_attention(x, offset <= 0)) < 1e-5);
  }
}

TEST("nn: a sliding window equals a dense band mask, for lengths around multiples of the window") {
  for (const int64_t length : {1, 3, 4, 5, 15, 16, 17, 18, 31, 32, 33, 50}) {
    const Heads x = random_heads(2, length, length);
    const at::Tensor band = offsets(length, length).abs() <= 4;
    EXPECT(largest_difference(nn::attention(x.q, x.k, x.v, {.window = 4}), plain_attention(x, band)) < 1e-5);
  }
}

TEST("nn: masked keys have no effect, with and without a window") {
  const Heads x = random_heads(2, 40, 40);
  at::Tensor mask = at::ones({2, 40}, at::kBool);
  mask[0].narrow(0, 25, 15).fill_(false);
  mask[1].narrow(0, 39, 1).fill_(false);
  const at::Tensor keys = mask.view({2, 1, 1, 40});
  const at::Tensor all = keys.expand({2, 1, 40, 40});
  EXPECT(largest_difference(nn::attention(x.q, x.k, x.v, {.key_mask = mask}), plain_attention(x, all)) < 1e-5);
  const at::Tensor band = (offsets(40, 40).abs() <= 4).logical_and(keys);
  EXPECT(largest_difference(nn::attention(x.q, x.k, x.v, {.window = 4, .key_mask = mask}), plain_attention(x, band)) <
         1e-5);
}

TEST("nn: a query without visible keys gets the mean of the values") {
  const Heads x = random_heads(1, 20, 20);
  at::Tensor mask = at::zeros({1, 20}, at::kBool);
  mask[0].narrow(0, 0, 3).fill_(true);
  const at::Tensor out = nn::attention(x.q, x.k, x.v, {.window = 2, .key_mask = mask});
  const at::Tensor mean = x.v.mean(2).repeat_interleave(2, 1).reshape({1, 32});
  EXPECT(largest_difference(out.select(1, 19), mean) < 1e-5);
}

TEST("nn: bfloat16 attention is close to float32 in every form") {
  const Heads x = random_heads(2, 48, 48);
  const auto narrow = [](const at::Tensor& tensor) { return tensor.to(at::kBFloat16); };
  at::Tensor mask = at::ones({2, 48}, at::kBool);
  mask[0].narrow(0, 30, 18).fill_(false);
  for (const nn::AttentionPattern& pattern :
       {nn::AttentionPattern{}, nn::AttentionPattern{.causal = true}, nn::AttentionPattern{.window = 4},
        nn::AttentionPattern{.window = 20}, nn::AttentionPattern{.key_mask = mask}}) {
    const at::Tensor wide = nn::attention(x.q, x.k, x.v, pattern);
    const at::Tensor close = nn::attention(narrow(x.q), narrow(x.k), narrow(x.v), pattern);
    EXPECT(close.scalar_type() == at::kBFloat16);
    EXPECT(((close.to(at::kFloat) - wide).norm() / wide.norm()).item<double>() < 1e-2);
  }
}

TEST("nn: an encoder layer follows its formula, with attention wider than the model") {
  const int64_t hidden = 12, heads = 4, kv_heads = 2, dim = 8;
  const auto tensors = layer_tensors(hidden, heads, kv_heads, dim, 20);
  const auto layer = nn::EncoderLayer::load(weights_of(tensors), {hidden, heads, kv_heads, dim, 1e-6, false}, 20);
  const auto rotary = nn::Rotary::make(6, dim, 1e6, kFloat32);
  const at::Tensor x = at::randn({2, 6, hidden});

  const auto norm = [&](const at::Tensor& value, const std::string& name) {
    return nn::rms_norm(value, tensors.at(name), 1e-6);
  };
  const auto project = [&](const at::Tensor& value, const std::string& name) {
    return at::linear(value, tensors.at(name + ".weight"));
  };
  const at::Tensor y = norm(x, "input_layernorm.weight");
  const auto split = [&](const std::string& name, int64_t count) {
    return project(y, "self_attn." + name).view({2, 6, count, dim});
  };
  const Heads all = {
      nn::apply_rotary(norm(split("q_proj", heads), "self_attn.q_norm.weight"), rotary).transpose(1, 2),
      nn::apply_rotary(norm(split("k_proj", kv_heads), "self_attn.k_norm.weight"), rotary).transpose(1, 2),
      split("v_proj", kv_heads).transpose(1, 2)};
  const at::Tensor attended =
      x + project(plain_attention(all, offsets(6, 6).abs() <= 2).to(at::kFloat), "self_attn.o_proj");
  const at::Tensor z = norm(attended, "post_attention_layernorm.weight");
  const at::Tensor expected =
      attended + project(at::silu(project(z, "mlp.gate_proj")) * project(z, "mlp.up_proj"), "mlp.down_proj");
  EXPECT(largest_difference(layer(x, rotary, {.window = 2}), expected) < 1e-3 * expected.abs().max().item<double>());
}

TEST("nn: cross-attention supports contexts of any length") {
  const int64_t hidden = 12, heads = 4, kv_heads = 2, dim = 8;
  const auto tensors = layer_tensors(hidden, heads, kv_heads, dim, 20);
  const auto cross =
      nn::CrossAttention::load(weights_of(tensors).sub("self_attn"), {hidden, heads, kv_heads, dim, 1e-6, false});
  const at::Tensor x = at::randn({2, 5, hidden}), context = at::randn({2, 9, hidden});
  const auto split = [&](const at::Tensor& value, const std::string& name, int64_t count) {
    return at::linear(value, tensors.at("self_attn." + name + ".weight")).view({2, -1, count, dim});
  };
  const Heads all = {
      nn::rms_norm(split(x, "q_proj", heads), tensors.at("self_attn.q_norm.weight"), 1e-6).transpose(1, 2),
      nn::rms_norm(split(context, "k_proj", kv_heads), tensors.at("self_attn.k_norm.weight"), 1e-6).transpose(1, 2),
      split(context, "v_proj", kv_heads).transpose(1, 2)};
  const at::Tensor expected = at::linear(plain_attention(all, at::ones({5, 9}, at::kBool)).to(at::kFloat),
                                         tensors.at("self_attn.o_proj.weight"));
  EXPECT(largest_difference(cross(x, cross.keys_values(context)), expected) < 1e-4);

  const auto read = cross.keys_values(context);
  std::vector<at::Tensor> outputs;
  for (int64_t head = 0; head < heads; ++head) {
    outputs.push_back(at::matmul(cross.weights(x, read, head), read.v.select(1, head / (heads / kv_heads))));
  }
  EXPECT(largest_difference(cross.o(at::cat(outputs, 2)), expected) < 1e-4);
}

TEST("nn: errors contain the full name of a missing or mis-shaped weight") {
  auto tensors = layer_tensors(12, 4, 2, 8, 20);
  const auto load = [&] { nn::EncoderLayer::load(weights_of(tensors), {12, 4, 2, 8, 1e-6, false}, 20); };
  tensors["mlp.up_proj.weight"] = at::zeros({21, 12});
  EXPECT_THROWS(load(), "'mlp.up_proj.weight' has shape [21, 12], expected [20, 12]");
  tensors.erase("self_attn.k_norm.weight");
  EXPECT_THROWS(load(), "'self_attn.k_norm.weight' is missing");
}
