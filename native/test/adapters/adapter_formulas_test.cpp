// Compares adapter formulas with results computed by hand and by LyCORIS.
#include "core/adapters/adapter.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

#include "test/differences.h"
#include "test/test.h"

using namespace carillon;
using test::largest_difference;

namespace {

at::Tensor matrix(std::initializer_list<float> values, int64_t columns) {
  return at::tensor(at::ArrayRef<float>(values.begin(), values.size())).view({-1, columns});
}

const at::Tensor kFirst = matrix({1, 2, 3, 4}, 2), kSecond = matrix({1, 0, -1, 2, 1, 0}, 3);

at::Tensor base_weight() { return at::arange(24, at::kFloat).view({4, 6}) / 10; }

}  // namespace

TEST("adapters: splits a dimension into two LoKr factors as LyCORIS does") {
  const int64_t factors[] = {-1, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::pair<int64_t, std::array<int64_t, 9>> smaller_parts[] = {
      {256, {16, 1, 2, 2, 4, 4, 4, 4, 8}},   {1024, {32, 1, 2, 2, 4, 4, 4, 4, 8}}, {2048, {32, 1, 2, 2, 4, 4, 4, 4, 8}},
      {2560, {40, 1, 2, 2, 4, 5, 5, 5, 8}},  {4096, {64, 1, 2, 2, 4, 4, 4, 4, 8}}, {6144, {64, 1, 2, 3, 4, 4, 6, 6, 8}},
      {12288, {96, 1, 2, 3, 4, 4, 6, 6, 8}}, {360, {18, 1, 2, 3, 4, 5, 6, 6, 8}}};
  for (const auto& [dimension, parts] : smaller_parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT((split_dimension(dimension, factors[i]) == DimensionFactors{parts[i], dimension / parts[i]}));
    }
  }
  EXPECT((split_dimension(13, -1) == DimensionFactors{1, 13}));
  EXPECT((split_dimension(6, 3) == DimensionFactors{2, 3}));
}

TEST("adapters: LoKr decomposes a factor only if the rank is below half its larger side") {
  const LokrShape defaults = LokrShape::of(2048, 2048, 64, -1, false);
  EXPECT((defaults.out == DimensionFactors{32, 64}) && (defaults.in == DimensionFactors{32, 64}));
  EXPECT(defaults.w1_is_whole && defaults.w2_is_whole);
  EXPECT_EQ(defaults.effective_alpha(128, 64), 64.0);

  const LokrShape by_eight = LokrShape::of(1024, 2048, 64, 8, true);
  EXPECT((by_eight.out == DimensionFactors{8, 128}) && (by_eight.in == DimensionFactors{8, 256}));
  EXPECT(by_eight.w1_is_whole && !by_eight.w2_is_whole);
  EXPECT_EQ(by_eight.effective_alpha(128, 64), 128.0);
  EXPECT_EQ(by_eight.effective_alpha(0, 64), 64.0);

  EXPECT(LokrShape::of(2048, 2048, 16, -1, true).w1_is_whole);
  EXPECT(!LokrShape::of(2048, 2048, 15, -1, true).w1_is_whole);
  EXPECT(LokrShape::of(2048, 2048, 15, -1, false).w1_is_whole);
}

TEST("adapters: LoKr has the expected parameter count at default settings") {
  int64_t count = 0, with_magnitudes = 0;
  const auto add = [&](int64_t out, int64_t modules) {
    const LokrShape shape = LokrShape::of(out, 2048, 64, -1, false);
    count += modules * (shape.out.small * shape.in.small + shape.out.large * shape.in.large);
    with_magnitudes += modules * out;
  };
  add(2048, 96);  // query and output projections: 24 layers, two attentions
  add(1024, 96);  // key and value projections
  EXPECT_EQ(count, 786'432);
  EXPECT_EQ(count + with_magnitudes, 1'081'344);
}

TEST("adapters: LoKr delta is kron(w1, w2)") {
  const at::Tensor delta = lokr_delta(kFirst, kSecond, 1);
  EXPECT(delta.equal(matrix({1, 0, -1, 2, 0, -2, 2, 1, 0, 4, 2, 0, 3, 0, -3, 4, 0, -4, 6, 3, 0, 8, 4, 0}, 6)));
  const at::Tensor x = at::arange(1, 7, at::kFloat);
  EXPECT(at::mv(lokr_delta(kFirst, kSecond, 0.5), x).equal(at::tensor({-3.0f, 15.0f, -7.0f, 32.0f})));
}

TEST("adapters: DoRA scales each row of the changed weight to its magnitude") {
  const at::Tensor weight = base_weight(), changed = weight + lokr_delta(kFirst, kSecond, 0.5);
  EXPECT(largest_difference(row_norms(weight).view(-1), at::tensor({0.7416f, 2.1237f, 3.5763f, 5.0388f})) < 1e-4);
  EXPECT(largest_difference(row_norms(changed).view(-1), at::tensor({1.5652f, 4.2732f, 4.8877f, 9.9368f})) < 1e-4);
  EXPECT(largest_difference(at::mv(changed, at::arange(1, 7, at::kFloat)), at::tensor({4.0f, 34.6f, 25.2f, 76.8f})) <
         1e-4);
  const at::Tensor adapted = dora_weight(changed, row_norms(weight), kLokrNormEpsilon);
  EXPECT(largest_difference(adapted[0], at::tensor({0.2369f, 0.0474f, -0.1421f, 0.6159f, 0.1895f, -0.2369f})) < 1e-4);
  EXPECT(largest_difference(adapted[3], at::tensor({2.4340f, 1.7241f, 1.0142f, 3.0932f, 2.1298f, 1.1663f})) < 1e-4);
}

TEST("adapters: DoRA over columns equals DoRA over rows of the transpose") {
  const at::Tensor changed = base_weight() + lokr_delta(kFirst, kSecond, 0.5);
  const at::Tensor columns = at::arange(1, 7, at::kFloat).view({1, 6});
  EXPECT(dora_weight(changed, columns, kLokrNormEpsilon)
             .equal(dora_weight(changed.t().contiguous(), columns.t(), kLokrNormEpsilon).t()));
}

TEST("adapters: DoRA with the PEFT epsilon keeps zero rows finite and tiny rows unchanged") {
  const at::Tensor weight = at::cat({at::zeros({1, 6}), base_weight() * 1e-6});
  const at::Tensor adapted = dora_weight(weight, row_norms(weight), kLoraNormEpsilon);
  EXPECT(adapted.isfinite().all().item<bool>());
  EXPECT(adapted.equal(weight));
}
