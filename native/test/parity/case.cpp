#include "test/parity/case.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

namespace carillon::parity {

namespace {

std::string metadata(const Safetensors& golden, const std::string& key) {
  const auto entry = golden.metadata().find(key);
  if (entry == golden.metadata().end())
    throw std::runtime_error(golden.path() + ": the golden has no metadata '" + key + "'");
  return entry->second;
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor wanted = expected.to(at::kDouble);
  const double scale = at::linalg_vector_norm(wanted).item<double>();
  const double distance = at::linalg_vector_norm(actual.to(at::kDouble) - wanted).item<double>();
  return scale > 0 ? distance / scale : distance;
}

double unequal_share(const at::Tensor& actual, const at::Tensor& expected) {
  if (expected.numel() == 0) return 0;
  return actual.to(at::kLong).ne(expected.to(at::kLong)).to(at::kDouble).mean().item<double>();
}

std::map<std::string, Module>& modules() {
  static std::map<std::string, Module> registered;
  return registered;
}

}  // namespace

Case::Case(const std::string& checkpoints, const std::string& golden_path, const Placement& placement)
    : name(std::filesystem::path(golden_path).stem().string()),
      placement(placement),
      golden_(Safetensors(golden_path)) {
  module = metadata(golden_, "module");
  checkpoint_directory = (std::filesystem::path(checkpoints) / metadata(golden_, "checkpoint")).string();
  params = Json::parse(metadata(golden_, "params"), golden_path + " (params)");
}

at::Tensor Case::input(const std::string& name) const {
  const at::Tensor stored = stored_input(name);
  return stored.is_floating_point() ? stored.to(placement.device, placement.dtype) : stored.to(placement.device);
}

void Case::compare(const std::string& name, const at::Tensor& actual, const at::Tensor& mask) {
  if (!has_output(name)) return;
  at::Tensor expected = golden_.tensor("out." + name);
  at::Tensor computed = actual.cpu();
  if (computed.sizes() != expected.sizes()) {
    std::ostringstream message;
    message << "output " << name << " has shape " << computed.sizes() << ", the golden " << expected.sizes();
    throw std::runtime_error(message.str());
  }
  if (mask.defined()) {
    const at::Tensor rows = mask.cpu().ne(0);
    expected = expected.index({rows});
    computed = computed.index({rows});
  }
  const bool integer = !expected.is_floating_point();
  comparisons_.push_back(
      {name, integer, integer ? unequal_share(computed, expected) : relative_error(computed, expected)});
}

std::vector<std::string> Case::missing() const {
  std::vector<std::string> outputs;
  for (const auto& tensor : golden_.names()) {
    if (tensor.rfind("out.", 0) != 0) continue;
    const std::string output = tensor.substr(4);
    const bool compared =
        std::any_of(comparisons_.begin(), comparisons_.end(), [&](const auto& c) { return c.output == output; });
    if (!compared) outputs.push_back(output);
  }
  return outputs;
}

bool register_module(const std::string& name, Depth depth, Function function) {
  return modules().emplace(name, Module{depth, function}).second;
}

const Module* find_module(const std::string& name) {
  const auto found = modules().find(name);
  return found == modules().end() ? nullptr : &found->second;
}

}  // namespace carillon::parity
