#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace carillon {

class Dit;
class Weights;

/// Added to a norm before it divides. LyCORIS adds the machine epsilon of the adapter's type: float32 in training, but
/// bfloat16 in programs that cast an adapter before they render. PEFT adds nothing: the smallest float leaves every
/// norm as it is but 0.
constexpr double kLokrNormEpsilon = 1.1920928955078125e-07, kLokrNormEpsilonBfloat16 = 0.0078125,
                 kLoraNormEpsilon = 1.1754943508222875e-38;

/// A weight that adapters can change: a projection of a DiT.
struct AdapterTarget {
  std::string name;  // as Projection::name
  int64_t out, in;
};

std::vector<AdapterTarget> adapter_targets(const Dit& dit);

/// A matrix of an adapter, whole or as a product; in the type of its file, on the CPU.
struct AdapterMatrix {
  at::Tensor left;   // [m, n], or [m, r] of a product
  at::Tensor right;  // [r, n] of a product, else undefined

  int64_t rows() const { return left.size(0); }
  int64_t columns() const { return (right.defined() ? right : left).size(1); }
  std::optional<int64_t> rank() const;
  bool is_zero() const;
  /// [m, n] float32 on `device`.
  at::Tensor value(at::Device device) const;
};

/// What an adapter does to one weight W [out, in].
struct AdapterModule {
  std::string projection;                // as Projection::name
  std::optional<AdapterMatrix> w1 = {};  // LoKr only: delta = scale * kron(w1, w2)
  AdapterMatrix w2;                      // LoRA: delta = scale * w2, that is B A
  double scale = 1;
  at::Tensor magnitude = {};  // DoRA: norms of the rows [out, 1] or columns [1, in]; undefined without
  double norm_epsilon = 0;    // as dora_weight takes it

  /// W' of `weight` [out, in] float32 at `strength`: 0 gives W, 1 the weight as it was trained, what lies between
  /// is interpolated. Float32 on the weight's device.
  at::Tensor adapt(const at::Tensor& weight, double strength) const;
};

/// An adapter in memory, checked against the DiT it is for.
struct Adapter {
  enum class Kind { kLora, kLokr };

  Kind kind = Kind::kLora;
  std::vector<AdapterModule> modules;          // one per projection that the file names
  std::vector<std::string> unmatched_tensors;  // names in the file that fit nothing in the DiT
};

/// Reads an adapter for a DiT with these projections: LoRA as PEFT, ComfyUI and diffusers write it, LoKr as LyCORIS
/// writes it, both with or without DoRA. `path` is a .safetensors file, alone or with its adapter_config.json beside
/// it; or a folder that holds a PEFT adapter, itself or in `adapter/`, or lokr_weights.safetensors, or one other
/// .safetensors file, or of several one with lokr_config in its metadata. Ranks come from the shapes of tensors.
/// `dora_epsilon` is for the magnitudes of LyCORIS, of either kind. Throws kBadCheckpoint naming file and tensor for a
/// damaged adapter, one of another model, and one that is of neither kind, or what was looked for where none is.
Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets,
                     double dora_epsilon = kLokrNormEpsilon);

/// Gives every projection that `adapter` names its base weight, changed by the adapter at `strength`: computed in
/// float32 and rounded once to the weight's type. It starts from `decoder`, the weights that `dit` was loaded from,
/// whatever was merged before, so merging again at another strength needs no restoring. At strength 0 the base weights
/// are back, bit for bit.
void merge_adapter(Dit& dit, const Weights& decoder, const Adapter& adapter, double strength);

/// Puts back the base weights of every projection that `adapter` names, bit for bit.
void restore_base(Dit& dit, const Weights& decoder, const Adapter& adapter);

// The formulas of training and merging alike: what adapters make of a weight W [out, in]. All work in the dtype of
// their arguments (callers give float32) and under autograd; nothing is detached.

/// scale * kron(w1, w2): w1 [p, q], w2 [s, t] -> [p s, q t]; element (i s + k, j t + l) is w1(i, j) w2(k, l).
at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale);

/// The norms that DoRA starts from: of the rows of W, [out, 1].
at::Tensor row_norms(const at::Tensor& weight);

/// DoRA: `changed`, that is W plus its delta, with the norms `magnitude` of its rows (magnitude [out, 1]) or, as
/// LyCORIS before 3.2 had it, of its columns ([1, in]).
at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon);

/// A dimension as a product, small * large with small <= large.
struct Split {
  int64_t small, large;
  bool operator==(const Split&) const = default;
};

/// The split of `dimension` that LyCORIS chooses: by `factor` where that divides it, else by the largest divisor up to
/// `factor`; a negative factor asks for the split nearest to a square.
Split split_dimension(int64_t dimension, int64_t factor);

/// How a LoKr adapter of a weight [out, in] is made: its change is kron(w1, w2), each of w1 and w2 whole or a product
/// of two matrices with `rank` columns and rows.
struct LokrShape {
  Split out, in;  // w1 [out.small, in.small], w2 [out.large, in.large]
  bool w1_is_whole, w2_is_whole;

  static LokrShape of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both);

  /// `alpha` as stored: where both are whole it is the rank, whatever was asked for, so that the scale is 1.
  double effective_alpha(double alpha, int64_t rank) const;
};

}  // namespace carillon
