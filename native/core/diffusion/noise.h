#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace carillon {

/// Random numbers of one seed: Philox4x32-10 (Salmon et al., 2011), as in torch on CUDA. The host computes them with
/// only IEEE additions, multiplications, divisions and square roots, so that every machine draws the same floats.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t seed) : seed_(seed) {}

  /// Standard normal numbers, float32 on the CPU. The draws equal those of torch.randn with a CUDA generator of the
  /// same seed, up to the rounding of the GPU. Element k in row-major order uses Philox subsequence k. The draws differ
  /// for large sizes, for which torch reuses GPU threads.
  at::Tensor normal(at::IntArrayRef shape);

  /// A number in (0, 1) from 32 random bits.
  double uniform();

 private:
  uint64_t seed_;
  uint64_t draws_ = 0;  // number of drawn blocks of four words; torch's offset is 4 times this
};

/// Source of noise of a denoising run.
class Noise {
 public:
  virtual ~Noise() = default;
  /// Standard normal numbers [items, frames, channels], float32 on `device`.
  virtual at::Tensor next(int64_t frames, int64_t channels, at::Device device) = 0;
};

/// Seeded noise of a batch: one stream per item, so the noise of an item does not depend on the others.
class NoiseStreams final : public Noise {
 public:
  /// Throws kBadArgument if there are no seeds.
  explicit NoiseStreams(const std::vector<uint64_t>& seeds);
  at::Tensor next(int64_t frames, int64_t channels, at::Device device) override;

 private:
  std::vector<PhiloxStream> streams_;
};

}  // namespace carillon
