#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace carillon {

class Dit;
class Weights;

/// Epsilon that DoRA adds to a norm before dividing by it. LyCORIS adds the machine epsilon of the adapter's dtype:
/// float32 in training, bfloat16 in programs that cast adapters before rendering. PEFT adds nothing; kLoraNormEpsilon
/// is the smallest normal float32, which only avoids a division by 0.
constexpr double kLokrNormEpsilon = 1.1920928955078125e-07, kLokrNormEpsilonBfloat16 = 0.0078125,
                 kLoraNormEpsilon = 1.1754943508222875e-38;

/// A weight that adapters can change: a projection of a DiT.
struct AdapterTarget {
  std::string name;  // equals Projection::name
  int64_t out, in;
};

std::vector<AdapterTarget> adapter_targets(const Dit& dit);

/// A matrix of an adapter, stored whole or as a product of two. On the CPU, in the dtype of its file.
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

enum class AdapterKind { kLora, kLokr, kLoha, kIa3 };

/// "LoRA", "LoKr", "LoHa" or "IA3".
const char* name_of(AdapterKind kind);

/// Change of one weight W [out, in] by an adapter.
struct AdapterModule {
  std::string projection;                // as Projection::name
  std::optional<AdapterMatrix> w1 = {};  // LoKr: delta = scale * kron(w1, w2); LoHa: the elementwise product
  AdapterMatrix w2;                      // LoRA: delta = scale * w2, that is B A
  double scale = 1;
  at::Tensor magnitude = {};  // DoRA: norms of the rows [out, 1] or columns [1, in]; else undefined
  double norm_epsilon = 0;    // argument of dora_weight
  bool is_hadamard = false;   // true for LoHa
  at::Tensor gains = {};      // IA3, in place of w1 and w2: delta = W * gains, [out, 1] or [1, in]

  AdapterKind kind() const;
  /// Change of `weight` [out, in] float32, before DoRA.
  at::Tensor delta(const at::Tensor& weight) const;

  /// Applies the change to `weight` W [out, in]. Strength 0 returns W and 1 the trained weight; other values
  /// interpolate or extrapolate linearly. float32 on the weight's device.
  at::Tensor adapt(const at::Tensor& weight, double strength) const;
};

/// An adapter in memory that was validated against a DiT.
struct Adapter {
  using Kind = AdapterKind;

  Kind kind = Kind::kLora;                     // of its first module, because trainers may mix kinds
  std::vector<AdapterModule> modules;          // one per projection that the file names
  std::vector<std::string> unmatched_tensors;  // names in the file that fit nothing in the DiT
};

/// Reads an adapter for a DiT with these projections. Formats: LoRA of PEFT, ComfyUI, diffusers and kohya, LoKr of
/// LyCORIS, both with or without DoRA; LoHa and IA3 of PEFT and LyCORIS. Ranks come from tensor shapes. `dora_epsilon`
/// is the norm epsilon for DoRA by LyCORIS.
///
/// `path` is a .safetensors, .bin, .pt or .pth file, optionally with adapter_config.json beside it, or a folder. In a
/// folder the first of these is read: a PEFT adapter in the folder or its `adapter/`, lokr_weights.safetensors, the
/// only .safetensors file, the only .safetensors file with lokr_config in its metadata.
///
/// Throws kBadCheckpoint. The message names file and tensor of a damaged adapter, the model or kind of a foreign file,
/// or the files that were looked for.
Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets,
                     double dora_epsilon = kLokrNormEpsilon);

/// An adapter and its strength: 1 as trained, negative values reverse it.
struct ActiveAdapter {
  std::shared_ptr<const Adapter> adapter;
  double strength = 1;

  bool operator==(const ActiveAdapter&) const = default;
};

/// Replaces the adapters merged into `dit` by `active`. Each weight becomes W plus the sum of the changes that each
/// adapter alone makes to W. The sum is computed in float32, in the order of `active`, and rounded once to the dtype of
/// W. W comes from `decoder`, the weights that `dit` was loaded from, which never change. Weights without a change keep
/// the bytes and storage type as loaded. After a failure `dit` is the base model.
void merge_adapters(Dit& dit, const Weights& decoder, const std::vector<ActiveAdapter>& active);

// Formulas of training and merging for a weight W [out, in]. They use the dtype of their arguments (callers give
// float32) and are differentiable; nothing is detached.

/// scale * kron(w1, w2): w1 [p, q], w2 [s, t] -> [p s, q t]; element (i s + k, j t + l) is w1(i, j) w2(k, l).
at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale);

/// Initial magnitudes of DoRA: the norms of the rows of W, [out, 1].
at::Tensor row_norms(const at::Tensor& weight);

/// DoRA: scales the rows of `changed`, which is W plus its delta, to the norms `magnitude` [out, 1]. With `magnitude`
/// [1, in], as in LyCORIS before 3.2, scales the columns instead.
at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon);

/// Factors of a dimension, small <= large.
struct Split {
  int64_t small, large;
  bool operator==(const Split&) const = default;
};

/// Splits `dimension` into two factors as LyCORIS does. One of them is `factor` if it divides the dimension, else the
/// largest divisor up to `factor`. A negative `factor` gives the two factors that are nearest to each other.
Split split_dimension(int64_t dimension, int64_t factor);

/// Shapes of a LoKr adapter of a weight [out, in]. Its change is kron(w1, w2); each of w1 and w2 is whole, or a product
/// of two matrices of rank `rank`.
struct LokrShape {
  Split out, in;  // w1 [out.small, in.small], w2 [out.large, in.large]
  bool w1_is_whole, w2_is_whole;

  static LokrShape of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both);

  /// Value of `alpha` to store in a file. It is the rank if `alpha` is 0 or both factors are whole, so that the scale
  /// is 1.
  double effective_alpha(double alpha, int64_t rank) const;
};

}  // namespace carillon
