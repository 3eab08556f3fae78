#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace carillon {

/// Finite scalar quantisation (Mentzer et al., 2023) with the symmetric soft clamp of the reference tokenizer:
/// dimension d has levels[d] evenly spaced values in [-1, 1], an index counts them with dimension 0 fastest.
/// Always computed in float32.
class Fsq {
 public:
  /// Throws kBadArgument unless every level is at least 2.
  explicit Fsq(std::vector<int64_t> levels);

  int64_t dimensions() const { return static_cast<int64_t>(levels_.size()); }
  int64_t codebook_size() const { return codebook_size_; }

  /// z [..., D] -> indices [...] int64.
  at::Tensor quantize(const at::Tensor& z) const;
  /// The values of quantize(z) [..., D] float32 with a gradient: that of the soft clamp (a straight-through estimator,
  /// Bengio et al., 2013), since rounding has none.
  at::Tensor straight_through(const at::Tensor& z) const;
  /// indices [...] int64 -> values [..., D] float32. Throws kBadArgument for an index outside the codebook.
  at::Tensor values(const at::Tensor& indices) const;

 private:
  at::Tensor top_levels(const at::Device& device) const;
  at::Tensor bounded(const at::Tensor& z) const;

  std::vector<int64_t> levels_;
  std::vector<int64_t> basis_;
  int64_t codebook_size_ = 1;
};

}  // namespace carillon
