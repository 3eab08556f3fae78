#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace carillon {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four random words as a pure
/// function of counter and key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A number in [0, 1) with 53 random bits for token `index` of a row. Depends only on the arguments, not on the batch,
/// on other rows or on how earlier ids were chosen.
double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index);

// The steps from logits to a token, in order: penalize (conditional logits), guide (over the allowed columns), mask,
// candidate_weights, draw. Scores are float32 [n, K]: a row per sequence, a column per allowed id.

/// Below this temperature the most likely token is always chosen.
constexpr double kMinTemperature = 1e-6;

/// Repetition penalty (Keskar et al., CTRL, 2019): divides positive and multiplies negative logits of the row's new
/// `ids` by `penalty`, each id once. `row` [C] starts at id `first` and is changed in place.
void penalize(const at::Tensor& row, int64_t first, std::span<const int32_t> ids, double penalty);

/// Classifier-free guidance: u + scale * (c - u).
at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

/// Throws kNotFinite with a message about logits that are not finite.
[[noreturn]] void fail_not_finite();

/// Column of the highest score of each row; the lowest column of ties. Throws kNotFinite for NaN or infinity.
std::vector<int64_t> most_likely(const at::Tensor& scores);

/// Unnormalised probabilities exp((z - max z) / temperature) of the scores z of each row: float32 [n, K]; the most
/// likely column has 1. The weight is 0 for scores that are not among the `top_k` highest (scores equal to the lowest
/// of these are kept) and for weights below `min_p`. top_k <= 0 or top_k >= K excludes no score.
at::Tensor candidate_weights(const at::Tensor& scores, double temperature, int64_t top_k, double min_p);

/// Draws a column with probability proportional to its weight, from the smallest set of highest weights that contains
/// `top_p` of the total (at least one column; all columns if top_p <= 0 or top_p >= 1). Inverse CDF at `uniform` in [0,
/// 1) over columns by descending weight, ties by ascending column. Throws kNotFinite unless the sum is finite and
/// positive.
int64_t draw(std::span<const float> weights, double top_p, double uniform);

// Variants of most_likely and draw that run on the device of the scores without waiting for it. Where the originals
// throw kNotFinite, these return -1.

/// Like most_likely, but returns a tensor, int64 [n].
at::Tensor most_likely_columns(const at::Tensor& scores);
/// Like draw, but for all rows of weights [n, K] with uniforms float64 [n]; returns a tensor, int64 [n].
at::Tensor draw_columns(const at::Tensor& weights, double top_p, const at::Tensor& uniforms);

}  // namespace carillon
