#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace carillon {

/// The seeded noise of a batch: one stream per item, so an item's noise does not depend on its neighbours.
/// Every stream is torch's CPU generator, whatever the device: numbers are drawn in float32 on the host and
/// moved, so that a seed means the same song on every device. The generator takes the low 32 bits of a seed.
class NoiseStreams {
 public:
  explicit NoiseStreams(const std::vector<uint64_t>& seeds);

  /// The next [items, frames, channels] standard normal numbers, float32 on `device`. The first call gives what
  /// `torch.randn(1, frames, channels)` gives for each seed; later calls go on in the same streams.
  at::Tensor next(int64_t frames, int64_t channels, at::Device device);

 private:
  std::vector<at::Generator> streams_;
};

}  // namespace carillon
