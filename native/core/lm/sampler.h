#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace carillon {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a block of
/// four random words that is a pure function of counter and key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A number of [0, 1) with 53 random bits: the draw for token `index` of a row with this seed in this phase.
double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index);

// The steps from logits to a token, in the order they apply: penalize, guide, (mask),
// candidate_weights, draw. Scores are float32 [n, K]: a row per sequence, a column per allowed id.

/// Below this temperature the most likely token is taken.
constexpr double kMinTemperature = 1e-6;

/// Divides positive and multiplies negative logits of the ids a row already has by `penalty`
/// (Keskar et al., CTRL, 2019), each id once. `row`: [C], column 0 is id `first`; changed in place.
void penalize(const at::Tensor& row, int64_t first, std::span<const int32_t> ids, double penalty);

/// Classifier-free guidance: u + scale * (c - u).
at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

/// Says that the model's logits are not finite: throws kNotFinite.
[[noreturn]] void fail_not_finite();

/// The column of the highest score of each row, the lowest among equals. Throws kNotFinite for NaN or infinity.
std::vector<int64_t> most_likely(const at::Tensor& scores);

/// exp((z - max z) / temperature) of the `top_k` highest scores of each row, ties with the lowest of
/// them included, and 0 elsewhere, and 0 for weights below `min_p`: the likeliest has 1. float32 [n, K].
/// top_k 0 or below, or above K: all.
at::Tensor candidate_weights(const at::Tensor& scores, double temperature, int64_t top_k, double min_p);

/// Draws a column with probability proportional to its weight, from the smallest set of the heaviest
/// columns that holds `top_p` of the total (at least one; top_p at or below 0 or at or above 1: all).
/// Inverse CDF at `uniform` of [0, 1) over the columns by falling weight, equal ones by rising column.
/// Throws kNotFinite when the weights have no finite positive sum.
int64_t draw(std::span<const float> weights, double top_p, double uniform);

// The last step where the scores lie, without the host's looking: the same columns; -1 in place of kNotFinite.

/// most_likely as int64 [n].
at::Tensor most_likely_columns(const at::Tensor& scores);
/// A draw for each row of weights [n, K], at uniforms float64 [n]: int64 [n].
at::Tensor draw_columns(const at::Tensor& weights, double top_p, const at::Tensor& uniforms);

}  // namespace carillon
