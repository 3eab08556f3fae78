#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace carillon {

class Dit;

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
  std::string projection;           // as Projection::name
  std::optional<AdapterMatrix> w1;  // LoKr only: delta = scale * kron(w1, w2)
  AdapterMatrix w2;                 // LoRA: delta = scale * w2, that is B A
  double scale = 1;
  at::Tensor magnitude;     // DoRA: norms of the rows [out, 1] or columns [1, in]; undefined without
  double norm_epsilon = 0;  // as dora_weight takes it

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

}  // namespace carillon
