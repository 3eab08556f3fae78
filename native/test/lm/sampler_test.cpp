#include "core/lm/sampler.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <random>

#include "test/test.h"

using namespace carillon;

namespace {

const float kNone = -std::numeric_limits<float>::infinity();

std::vector<float> weights_of(const std::vector<float>& scores, double temperature = 1.0, int64_t top_k = 0,
                              double min_p = 0.0) {
  const auto weights = candidate_weights(at::tensor(scores).unsqueeze(0), temperature, top_k, min_p);
  return {weights.const_data_ptr<float>(), weights.const_data_ptr<float>() + weights.numel()};
}

/// Columns that draw() can return.
std::vector<int64_t> reachable(const std::vector<float>& weights, double top_p) {
  std::vector<bool> seen(weights.size());
  for (int i = 0; i < 500; ++i) seen[static_cast<size_t>(draw(weights, top_p, (i + 0.5) / 500))] = true;
  std::vector<int64_t> columns;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) columns.push_back(static_cast<int64_t>(i));
  }
  return columns;
}

using Columns = std::vector<int64_t>;

}  // namespace

TEST("uniform draws: differ by seed, phase and index, and are uniform") {
  EXPECT(uniform_draw(1, 0, 0) != uniform_draw(2, 0, 0));
  EXPECT(uniform_draw(1, 0, 0) != uniform_draw(1, 1, 0));
  EXPECT(uniform_draw(1, 0, 0) != uniform_draw(1, 0, 1));
  EXPECT(uniform_draw(uint64_t{1} << 40, 0, 0) != uniform_draw(0, 0, 0));
  double sum = 0.0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const double u = uniform_draw(42, 5, i);
    EXPECT(u >= 0.0 && u < 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 20'000, 0.5, 0.01);
}

TEST("sampler: guidance is u + s (c - u), and scale 1 gives c") {
  const auto c = at::tensor({1.0f, -2.0f, 0.5f}), u = at::tensor({0.25f, 1.0f, 0.5f});
  EXPECT(guide(c, u, 2.5).equal(at::tensor({2.125f, -6.5f, 0.5f})));
  EXPECT(guide(c, u, 1.0).equal(c));
}

TEST("sampler: the penalty divides positive and multiplies negative logits, once per id in the window") {
  auto row = at::tensor({2.0f, -2.0f, 3.0f, 0.0f});
  const std::vector<int32_t> ids = {10, 11, 11, 13, 99, 3};
  penalize(row, 10, ids, 2.0);
  EXPECT(row.equal(at::tensor({1.0f, -4.0f, 3.0f, 0.0f})));
}

TEST("sampler: most_likely returns the lowest of equally likely columns") {
  EXPECT(most_likely(at::tensor({0.0f, 3.0f, 3.0f, 1.0f, 5.0f, 5.0f, 1.0f, 1.0f}).view({2, 4})) == (Columns{1, 0}));
  EXPECT_THROWS(most_likely(at::tensor({0.0f, std::nanf("")}).view({1, 2})), "not finite");
}

TEST("sampler: top k keeps the k highest scores, and all scores equal to the k-th") {
  const std::vector<float> scores = {1.0f, 3.0f, 2.0f, 2.0f, 0.0f};
  const auto kept = [&](int64_t k) { return reachable(weights_of(scores, 1.0, k), 1.0); };
  EXPECT(kept(1) == (Columns{1}));
  EXPECT(kept(2) == (Columns{1, 2, 3}));
  EXPECT(kept(3) == (Columns{1, 2, 3}));
  EXPECT(kept(4) == (Columns{0, 1, 2, 3}));
  EXPECT(kept(0) == (Columns{0, 1, 2, 3, 4}));
  EXPECT(kept(-1) == kept(0) && kept(5) == kept(0) && kept(100) == kept(0));
  EXPECT(reachable(weights_of({1.0f, std::nextafter(1.0f, 2.0f)}, 1.0, 1), 1.0) == (Columns{1}));
}

TEST("sampler: min p keeps columns above that share of the highest probability, after temperature") {
  const float half = std::log(0.5f);
  EXPECT((reachable(weights_of({half - 0.01f, 0.0f, half + 0.01f}, 1.0, 0, 0.5), 1.0) == Columns{1, 2}));
  EXPECT((reachable(weights_of({half, 0.0f, half * 0.49f}, 0.5, 0, 0.5), 1.0) == Columns{1, 2}));
  EXPECT((reachable(weights_of({-1.0f, 0.0f, -2.0f}, 1.0, 0, 1.0), 1.0) == Columns{1}));
  EXPECT((reachable(weights_of({-1.0f, 0.0f, -2.0f}, 1.0, 0, 0.0), 1.0) == Columns{0, 1, 2}));
}

TEST("sampler: top p keeps the smallest set of columns with that probability mass, at least one") {
  const std::vector<float> weights = {0.05f, 0.5f, 0.2f, 0.25f};
  EXPECT(reachable(weights, 0.4) == (Columns{1}));
  EXPECT(reachable(weights, 0.6) == (Columns{1, 3}));
  EXPECT(reachable(weights, 0.9) == (Columns{1, 2, 3}));
  EXPECT(reachable(weights, 1e-12) == (Columns{1}));
  for (const double off : {0.0, -1.0, 1.0, 1.5}) EXPECT(reachable(weights, off) == (Columns{0, 1, 2, 3}));
}

TEST("sampler: takes columns of equal weight in ascending order") {
  const std::vector<float> weights(10, 1.0f);
  EXPECT(reachable(weights, 0.25) == (Columns{0, 1, 2}));
  EXPECT_EQ(draw(weights, 1.0, 0.0), 0);
  EXPECT_EQ(draw(weights, 1.0, 0.35), 3);
  EXPECT_EQ(draw(weights, 1.0, std::nextafter(1.0, 0.0)), 9);
}

TEST("sampler: never draws masked columns, even if only one is unmasked") {
  EXPECT(reachable(weights_of({kNone, 0.3f, kNone}), 0.9) == (Columns{1}));
  EXPECT(reachable(weights_of({kNone, 0.3f, -80.0f, kNone}), 1.0) == (Columns{1}));
  EXPECT(reachable(weights_of({kNone, 5.0f, 5.0f, kNone}, 1.0, 3), 1.0) == (Columns{1, 2}));
}

TEST("sampler: temperature sharpens and flattens, and a tiny one takes the maximum") {
  EXPECT_NEAR(weights_of({0.0f, 1.0f}, 0.5)[0], std::exp(-2.0), 1e-6);
  EXPECT_NEAR(weights_of({0.0f, 1.0f}, 4.0)[0], std::exp(-0.25), 1e-6);
  EXPECT(reachable(weights_of({1.0f, 1.001f, 0.9f}, kMinTemperature), 1.0) == (Columns{1}));
  EXPECT(reachable(weights_of({1000.0f, 3000.0f}, kMinTemperature), 0.9) == (Columns{1}));
}

TEST("sampler: reports NaN and infinity") {
  EXPECT_THROWS(draw(weights_of({0.0f, std::nanf("")}), 0.9, 0.5), "not finite");
  EXPECT_THROWS(draw(weights_of({0.0f, -kNone}), 1.0, 0.5), "not finite");
  EXPECT_THROWS(draw(weights_of({kNone, kNone}), 1.0, 0.5), "not finite");
}

TEST("sampler: 100,000 draws follow the distribution (chi square)") {
  const std::vector<float> weights = {0.30f, 0.02f, 0.08f, 0.25f, 0.05f, 0.10f, 0.05f, 0.15f};
  std::vector<int> counts(weights.size());
  for (uint64_t i = 0; i < 100'000; ++i) ++counts[static_cast<size_t>(draw(weights, 1.0, uniform_draw(3, 1, i)))];
  double chi_square = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double expected = 100'000 * weights[i];
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT(chi_square < 24.32);  // 7 degrees of freedom, p = 0.001
}

TEST("sampler: draws the same columns as with a full sort") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> scores(3000);
    for (auto& score : scores) score = std::round(normal(random) * 8) / 8;  // with many ties
    const auto weights = weights_of(scores);
    std::vector<size_t> order(weights.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
    double total = 0.0, mass = 0.0, before = 0.0;
    for (const float weight : weights) total += weight;
    for (size_t i = 0; mass < 0.9 * total; ++i) mass += weights[order[i]];
    const double uniform = uniform_draw(9, 0, static_cast<uint64_t>(trial));
    size_t i = 0;
    for (before = weights[order[0]]; before <= uniform * mass; before += weights[order[i]]) ++i;
    EXPECT_EQ(draw(weights, 0.9, uniform), static_cast<int64_t>(order[i]));
  }
}

TEST("draw_columns: matches draw for each row, with -1 where draw throws") {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> level(0, 9);
  constexpr int64_t kRows = 60, kColumns = 50;
  auto weights = at::empty({kRows, kColumns});
  auto uniforms = at::empty({kRows}, at::kDouble);
  for (int64_t row = 0; row < kRows; ++row) {
    uniforms.mutable_data_ptr<double>()[row] = row == 0 ? 0.0 : uniform_draw(3, 1, static_cast<uint64_t>(row));
    // The weights are small integers. Many are equal, some are 0, and their sum does not depend on the order.
    for (int64_t i = 0; i < kColumns; ++i)
      weights.mutable_data_ptr<float>()[row * kColumns + i] = static_cast<float>(level(random));
  }
  for (const double top_p : {0.0, 0.3, 0.9, 1.0}) {
    const auto columns = draw_columns(weights, top_p, uniforms);
    for (int64_t row = 0; row < kRows; ++row) {
      const std::span<const float> line(weights.const_data_ptr<float>() + row * kColumns, kColumns);
      EXPECT_EQ(columns[row].item<int64_t>(), draw(line, top_p, uniforms[row].item<double>()));
    }
  }
  weights[1].fill_(0);
  weights[2][7] = std::numeric_limits<float>::quiet_NaN();
  weights[3][7] = std::numeric_limits<float>::infinity();
  const auto columns = draw_columns(weights, 0.9, uniforms);
  for (int64_t row = 0; row < 5; ++row) EXPECT_EQ(columns[row].item<int64_t>() == -1, row >= 1 && row <= 3);
}

TEST("most_likely_columns: matches most_likely, with -1 where it throws") {
  const auto scores = at::tensor({1.0f, 3.0f, 2.0f, kNone, 5.0f, 4.0f}).view({2, 3});
  EXPECT((most_likely_columns(scores) == at::tensor(most_likely(scores), at::kLong)).all().item<bool>());
  scores[0][0] = std::numeric_limits<float>::quiet_NaN();
  scores[1].fill_(kNone);
  EXPECT((most_likely_columns(scores) == -1).all().item<bool>());
}
