#include "pretraining/initial_weights.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace carillon::pretraining {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// FNV-1a: the same on every machine, which std::hash does not promise.
uint64_t hash(const std::string& text) {
  uint64_t value = 14695981039346656037u;
  for (const char character : text) value = (value ^ static_cast<unsigned char>(character)) * 1099511628211u;
  return value;
}

double deviation(const std::string& name, at::IntArrayRef shape) {
  constexpr double kToken = 0.02, kResidual = 0.3, kQuiet = 0.1;
  const auto is = [&](const char* part) { return contains(name, part); };
  if (is("scale_shift_table") || is("special_token") || is("null_condition") || is("proj_out.1.")) return kToken;
  const double elements = static_cast<double>(c10::multiply_integers(shape));
  if (contains(name, "conv_t1")) {  // an output sample is the sum over the inputs of two taps
    return 1 / std::sqrt(2.0 * static_cast<double>(shape[0]));
  }
  const double by_fan_in = 1 / std::sqrt(elements / static_cast<double>(shape[0]));
  if (contains(name, "time_proj.")) return kToken * by_fan_in;
  if (name == "decoder.conv2.weight") return kQuiet * by_fan_in;  // the waveform: silence is nearer to music than noise
  // Only a lookup table is called so without being a projection: a vocabulary is longer than wide.
  if (ends_with(name, "embed_tokens.weight") && shape[0] > 2 * shape[1]) return kToken;
  const bool residual = contains(name, "o_proj") || contains(name, "down_proj") || contains(name, "res_unit");
  return residual && !ends_with(name, "conv1.weight") ? kResidual * by_fan_in : by_fan_in;
}

}  // namespace

Parameters::Initial initial_weights(int64_t seed) {
  return [seed](const std::string& name, at::IntArrayRef shape) {
    if (ends_with(name, ".bias") || ends_with(name, ".alpha") || ends_with(name, ".beta")) return at::zeros(shape);
    if (contains(name, "norm") && shape.size() == 1) return at::ones(shape);
    auto generator = at::detail::createCPUGenerator(hash(name) ^ static_cast<uint64_t>(seed));
    return at::randn(shape, generator, at::kFloat) * deviation(name, shape);
  };
}

}  // namespace carillon::pretraining
