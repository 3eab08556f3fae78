#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace carillon {

/// Random numbers of one seed: Philox4x32-10 (Salmon et al., 2011) as torch draws on CUDA. Computed on the host by
/// IEEE additions, multiplications, divisions and square roots alone, so every machine draws the same floats.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t seed) : seed_(seed) {}

  /// The next standard normal numbers, float32 on the CPU. The first call is
  /// `torch.randn(shape, generator=torch.Generator("cuda").manual_seed(seed))` up to the GPU's rounding, later calls are
  /// its further draws. Element k of the row-major order has subsequence k, also where a GPU would reuse its threads.
  at::Tensor normal(at::IntArrayRef shape);

  /// The next number in (0, 1), of 32 random bits.
  double uniform();

 private:
  uint64_t seed_;
  uint64_t draws_ = 0;  // counts blocks of four words: what torch calls an offset of 4
};

/// Where a denoising run takes its noise from.
class Noise {
 public:
  virtual ~Noise() = default;
  /// The next [items, frames, channels] standard normal numbers, float32 on `device`.
  virtual at::Tensor next(int64_t frames, int64_t channels, at::Device device) = 0;
};

/// The seeded noise of a batch: one stream per item, so an item's noise does not depend on its neighbours.
class NoiseStreams final : public Noise {
 public:
  /// Throws kBadArgument without seeds.
  explicit NoiseStreams(const std::vector<uint64_t>& seeds);
  at::Tensor next(int64_t frames, int64_t channels, at::Device device) override;

 private:
  std::vector<PhiloxStream> streams_;
};

}  // namespace carillon
