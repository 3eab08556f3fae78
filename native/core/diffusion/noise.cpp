#include "core/diffusion/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "core/runtime/error.h"

namespace carillon {

NoiseStreams::NoiseStreams(const std::vector<uint64_t>& seeds) {
  if (seeds.empty()) fail(ErrorCode::kBadArgument, "a batch needs at least one seed");
  for (const uint64_t seed : seeds) streams_.push_back(at::detail::createCPUGenerator(seed));
}

at::Tensor NoiseStreams::next(int64_t frames, int64_t channels, at::Device device) {
  std::vector<at::Tensor> items;
  for (const auto& stream : streams_) items.push_back(at::randn({1, frames, channels}, stream, at::kFloat));
  return at::cat(items).to(device);
}

}  // namespace carillon
