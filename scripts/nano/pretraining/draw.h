#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>

namespace carillon::pretraining {

/// The random choices of one step. Seed and step alone decide them, so that a resumed run goes on as an uninterrupted
/// one would, on any device.
class Draw {
 public:
  Draw(int64_t seed, int64_t step);

  int64_t below(int64_t count);  // 0 .. count - 1
  double uniform();              // [0, 1)
  at::Tensor normal(at::IntArrayRef shape);  // float32 on the CPU

 private:
  std::mt19937_64 engine_;
  at::Generator generator_;
};

}  // namespace carillon::pretraining
