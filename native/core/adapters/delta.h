#pragma once
#include <ATen/core/Tensor.h>

namespace carillon {

// What adapters make of a weight W [out, in]: the formulas of training and merging alike. All work in the dtype of
// their arguments (callers give float32) and under autograd; nothing is detached.

/// scale * b a: a [r, in], b [out, r] -> [out, in].
at::Tensor lora_delta(const at::Tensor& a, const at::Tensor& b, double scale);

/// scale * kron(w1, w2): w1 [p, q], w2 [s, t] -> [p s, q t]; element (i s + k, j t + l) is w1(i, j) w2(k, l).
at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale);

/// The norms that DoRA starts from: of the rows of W, [out, 1].
at::Tensor row_norms(const at::Tensor& weight);

/// Added to a norm before it divides. LyCORIS adds the machine epsilon of the adapter's type: float32 in training, but
/// bfloat16 in programs that cast an adapter before they render. PEFT adds nothing: the smallest float leaves every
/// norm as it is but 0.
constexpr double kLokrNormEpsilon = 1.1920928955078125e-07, kLokrNormEpsilonBfloat16 = 0.0078125,
                 kLoraNormEpsilon = 1.1754943508222875e-38;

/// DoRA: `changed`, that is W plus its delta, with the norms `magnitude` of its rows (magnitude [out, 1]) or, as
/// LyCORIS before 3.2 had it, of its columns ([1, in]).
at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon);

}  // namespace carillon
