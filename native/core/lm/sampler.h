#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace carillon {

/// Random number in [0, 1) with 53 bits for token `index` of a row. Depends only on the arguments, so a song does not
/// depend on its batch.
double uniform_draw(uint64_t seed, uint32_t phase, uint64_t index);

// Steps from logits to a token, in this order: penalize (conditional logits), guide (allowed columns), mask,
// candidate_weights, draw. Scores are float32 [n, K], with a row per sequence and a column per allowed id.

/// At lower temperatures, the most likely token is always chosen.
constexpr double kMinTemperature = 1e-6;

/// Applies the repetition penalty (Keskar et al., CTRL, 2019) to the logits of `ids`, in place. Divides positive logits
/// by `penalty` and multiplies negative ones, once per id. row[0] is the logit of id `first`.
void penalize(const at::Tensor& row, int64_t first, std::span<const int32_t> ids, double penalty);

/// Classifier-free guidance: u + scale * (c - u).
at::Tensor guide(const at::Tensor& conditional, const at::Tensor& unconditional, double scale);

/// Throws kNotFinite: the logits are not finite.
[[noreturn]] void fail_not_finite();

/// Returns for each row the column of the highest score. Of equal scores, the first column wins. Throws kNotFinite for
/// NaN or infinity.
std::vector<int64_t> most_likely(const at::Tensor& scores);

/// Weights exp((z - max z) / temperature) of the scores z of each row: float32 [n, K]. The most likely column has the
/// weight 1. Weights below `min_p` become 0. Weights of scores below the `top_k`-th highest score also become 0.
/// top_k <= 0 or top_k >= K excludes no score.
at::Tensor candidate_weights(const at::Tensor& scores, double temperature, int64_t top_k, double min_p);

/// Draws a column with probability proportional to its weight. Only the heaviest columns take part: as few as hold the
/// share `top_p` of the total weight. All columns take part if top_p <= 0 or top_p >= 1. `uniform` in [0, 1) selects
/// the column. Throws kNotFinite unless the total is finite and positive.
int64_t draw(std::span<const float> weights, double top_p, double uniform);

// Variants of most_likely and draw that run asynchronously on the device of the scores. Return -1 for rows that are not
// finite.

/// Variant of most_likely. Returns an int64 tensor [n].
at::Tensor most_likely_columns(const at::Tensor& scores);
/// Variant of draw for all rows of weights [n, K], with uniforms float64 [n]. Returns an int64 tensor [n].
at::Tensor draw_columns(const at::Tensor& weights, double top_p, const at::Tensor& uniforms);

}  // namespace carillon
