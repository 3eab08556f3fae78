#include "pretraining/draw.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace carillon::pretraining {

Draw::Draw(int64_t seed, int64_t step) {
  std::seed_seq sequence{static_cast<uint64_t>(seed), static_cast<uint64_t>(step)};
  engine_.seed(sequence);
  generator_ = at::detail::createCPUGenerator(engine_());
}

int64_t Draw::below(int64_t count) { return static_cast<int64_t>(uniform() * static_cast<double>(count)); }

double Draw::uniform() {
  constexpr int kBits = 53;
  return static_cast<double>(engine_() >> (64 - kBits)) / static_cast<double>(uint64_t{1} << kBits);
}

at::Tensor Draw::normal(at::IntArrayRef shape) { return at::randn(shape, generator_, at::kFloat); }

}  // namespace carillon::pretraining
