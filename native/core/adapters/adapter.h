#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/choice.h"

namespace carillon {

class Dit;
class Weights;

/// Epsilons that are added to the norm by which DoRA divides. LyCORIS adds the machine epsilon of the adapter's dtype:
/// float32 in training, bfloat16 in programs that cast adapters before rendering. PEFT adds no epsilon, so
/// kLoraNormEpsilon is the smallest normal float32: it only prevents a division by 0.
constexpr double kLokrNormEpsilon = 1.1920928955078125e-07, kLokrNormEpsilonBfloat16 = 0.0078125,
                 kLoraNormEpsilon = 1.1754943508222875e-38;

/// A weight that adapters can change: a projection of a DiT.
struct AdapterTarget {
  std::string name;  // equals Projection::name
  int64_t out, in;
};

std::vector<AdapterTarget> adapter_targets(const Dit& dit);

/// A matrix of an adapter, stored whole or as a product of two matrices. Its tensors are on the CPU, in the dtype of
/// the file.
struct AdapterMatrix {
  at::Tensor left;   // [m, n], or [m, r] of a product
  at::Tensor right;  // [r, n] of a product, else undefined

  int64_t rows() const { return left.size(0); }
  int64_t columns() const { return (right.defined() ? right : left).size(1); }
  std::optional<int64_t> rank() const;
  bool is_zero() const;
  /// The whole matrix [m, n], as float32 on `device`.
  at::Tensor value(at::Device device) const;
};

enum class AdapterKind { kLora, kLokr, kLoha, kIa3 };

template <>
inline constexpr Choices<AdapterKind> kChoices<AdapterKind> = {{"lora", AdapterKind::kLora},
                                                               {"lokr", AdapterKind::kLokr},
                                                               {"loha", AdapterKind::kLoha},
                                                               {"ia3", AdapterKind::kIa3}};

/// Change of one weight W [out, in] by an adapter.
struct AdapterModule {
  std::string projection;                // as Projection::name
  std::optional<AdapterMatrix> w1 = {};  // LoKr: delta = scale * kron(w1, w2); LoHa: scale * w1 * w2 (elementwise)
  AdapterMatrix w2;                      // LoRA: delta = scale * w2, where w2 = B A
  double scale = 1;
  at::Tensor magnitude = {};  // DoRA: norms of the rows [out, 1] or columns [1, in]; else undefined
  double norm_epsilon = 0;    // norm_epsilon argument of dora_weight
  bool is_hadamard = false;   // true for LoHa
  at::Tensor gains = {};      // IA3 (without w1 and w2): delta = W * gains, [out, 1] or [1, in]

  AdapterKind kind() const;
  /// Returns the float32 change to add to `weight` [out, in], before DoRA is applied.
  at::Tensor delta(const at::Tensor& weight) const;

  /// Applies the change to `weight` W [out, in]. Strength 0 returns W and 1 the trained weight; other values
  /// interpolate or extrapolate linearly. The result is float32 on the weight's device.
  at::Tensor adapt(const at::Tensor& weight, double strength) const;
};

/// An adapter in memory that was validated against a DiT.
struct Adapter {
  using Kind = AdapterKind;

  Kind kind = Kind::kLora;                     // kind of the first module; an adapter may mix kinds
  std::vector<AdapterModule> modules;          // one per projection that the file names
  std::vector<std::string> unmatched_tensors;  // names of tensors in the file that match no projection
  std::vector<std::string> warnings;           // settings of the adapter that were ignored or assumed
};

/// Reads an adapter for a DiT with these projections. Formats: LoRA (PEFT, ComfyUI, diffusers, kohya), LoKr and LoHa
/// (PEFT, LyCORIS), each with or without DoRA; IA3 (PEFT, LyCORIS). Ranks come from tensor shapes. Alpha comes from a
/// tensor of the module, or else from adapter_config.json or the metadata of the file (AdapterConfig).
/// `dora_epsilon` is the norm epsilon of LyCORIS's DoRA.
///
/// `path` is a folder, or a .safetensors, .bin, .pt or .pth file, optionally with adapter_config.json beside it. In a
/// folder and its `adapter/`, the first of these is read: a PEFT adapter, lokr_weights.safetensors,
/// loha_weights.safetensors, pytorch_lora_weights.safetensors, the only .safetensors file, the only .safetensors file
/// with lokr_config in its metadata.
///
/// Throws kBadCheckpoint. The message names the damaged tensor and its file, says what a file of another model or kind
/// contains, names the setting or tensor that cannot be applied, or lists the files that a folder lacks.
Adapter read_adapter(const std::string& path, const std::vector<AdapterTarget>& targets,
                     double dora_epsilon = kLokrNormEpsilon);

/// An adapter and its strength. Strength 1 applies the adapter as trained; negative values reverse its effect.
struct ActiveAdapter {
  std::shared_ptr<const Adapter> adapter;
  double strength = 1;

  bool operator==(const ActiveAdapter&) const = default;
};

/// Replaces the adapters merged into `dit` by `active`. Each weight becomes W plus the change of each adapter. W is the
/// original weight in `decoder`, from which each change is computed. The sum is in float32, in the order of `active`,
/// and is rounded once to the dtype of W. A weight that no adapter changes keeps its loaded bytes and storage type.
/// After a failure `dit` is the base model.
void merge_adapters(Dit& dit, const Weights& decoder, const std::vector<ActiveAdapter>& active);

// Formulas that training and merging share, for a weight W [out, in]. They compute in the dtype of their arguments
// (callers give float32) and are differentiable.

/// Returns scale * kron(w1, w2), a matrix [p * s, q * t], for w1 [p, q] and w2 [s, t].
at::Tensor lokr_delta(const at::Tensor& w1, const at::Tensor& w2, double scale);

/// Initial magnitudes of DoRA: the norms of the rows of W, [out, 1].
at::Tensor row_norms(const at::Tensor& weight);

/// DoRA: scales the rows of `changed`, which is W plus its delta, to the norms `magnitude` [out, 1]. With `magnitude`
/// [1, in], as in LyCORIS before 3.2, scales the columns instead.
at::Tensor dora_weight(const at::Tensor& changed, const at::Tensor& magnitude, double norm_epsilon);

/// Two factors of a dimension, with small <= large.
struct DimensionFactors {
  int64_t small, large;
  bool operator==(const DimensionFactors&) const = default;
};

/// Splits `dimension` into two factors as LyCORIS does. If `factor` divides `dimension`, it is one of the two.
/// Otherwise the smaller one is at most `factor`, and the two are as close to each other as possible. -1 sets no limit.
DimensionFactors split_dimension(int64_t dimension, int64_t factor);

/// Shapes of the factors w1 and w2 of a LoKr adapter. The adapter changes a weight [out, in] by kron(w1, w2). Each
/// factor is stored whole, or as a product of two matrices of rank `rank`.
struct LokrShape {
  DimensionFactors out, in;  // w1 [out.small, in.small], w2 [out.large, in.large]
  bool w1_is_whole, w2_is_whole;

  static LokrShape of(int64_t out, int64_t in, int64_t rank, int64_t factor, bool decompose_both);

  /// Value of `alpha` to store in a file. If `alpha` is 0, or both w1 and w2 are whole, the value is the rank: the
  /// scale is then 1.
  double effective_alpha(double alpha, int64_t rank) const;
};

}  // namespace carillon
