#include "core/training/adapter_import.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>

#include "core/adapters/adapter_file.h"
#include "core/runtime/error.h"
#include "core/training/lokr.h"
#include "core/training/lora.h"
#include "core/training/training_state.h"

namespace carillon {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  fail(ErrorCode::kBadArgument, path + " cannot be resumed: " + what);
}

/// Only what is trained can be gone on with, so nothing else is a target.
Adapter read(const std::string& path, const TrainableAdapter& adapter) {
  std::vector<AdapterTarget> targets;
  for (const auto& module : adapter.modules()) {
    targets.push_back({module.name, module.weight.size(0), module.weight.size(1)});
  }
  try {
    return read_adapter(path, targets);
  } catch (const Error& error) {
    refuse(path,
           std::string("there is no ") + kTrainingStateFile + " in it, and no adapter to begin with: " + error.what());
  }
}

void add_factor(NamedTensors& tensors, const std::string& name, const AdapterMatrix& matrix) {
  if (matrix.right.defined()) {
    tensors.emplace_back(name + "_a", matrix.left);
    tensors.emplace_back(name + "_b", matrix.right);
  } else {
    tensors.emplace_back(name, matrix.left);
  }
}

/// What a file holds of a projection, in the order and under the names of TrainedDelta::parameters.
NamedTensors stored_parameters(const AdapterModule& module) {
  NamedTensors tensors;
  if (module.w1) {
    add_factor(tensors, "lokr_w1", *module.w1);
    add_factor(tensors, "lokr_w2", module.w2);
  } else {
    tensors = {{"lora_A", module.w2.right}, {"lora_B", module.w2.left}};
  }
  if (module.magnitude.defined()) tensors.emplace_back("dora_scale", module.magnitude);
  return tensors;
}

std::string describe(const NamedTensors& tensors) {
  std::ostringstream text;
  for (const auto& [name, tensor] : tensors) text << (text.tellp() > 0 ? ", " : "") << name << " " << tensor.sizes();
  return text.str();
}

double scale_of(const TrainableAdapter& adapter, const TrainedDelta& delta) {
  return std::holds_alternative<LoraDesign>(adapter.design()) ? static_cast<const TrainedLora&>(delta).scale
                                                              : static_cast<const TrainedLokr&>(delta).scale;
}

void check_fit(const std::string& path, const Adapter& stored, const TrainableAdapter& adapter) {
  const bool is_lora = std::holds_alternative<LoraDesign>(adapter.design());
  if (is_lora != (stored.kind == Adapter::Kind::kLora)) {
    refuse(path, std::string("it is a ") + (is_lora ? "LoKr" : "LoRA") + ", not a " + (is_lora ? "LoRA" : "LoKr"));
  }
  if (!stored.unmatched_tensors.empty()) {
    refuse(path, "tensor '" + stored.unmatched_tensors[0] + "' belongs to nothing that is trained");
  }
  if (stored.modules.size() != adapter.modules().size()) {
    refuse(path, "it changes " + std::to_string(stored.modules.size()) + " of the " +
                     std::to_string(adapter.modules().size()) + " projections that are trained");
  }
}

void copy_module(const std::string& path, const AdapterModule& stored, const TrainedDelta& delta, double scale) {
  NamedTensors trained = delta.parameters();
  const auto scalar =
      std::find_if(trained.begin(), trained.end(), [](const auto& named) { return named.first == "scalar"; });
  if (scalar != trained.end()) {
    scalar->second.fill_(1.0);
    trained.erase(scalar);
  }
  const NamedTensors tensors = stored_parameters(stored);
  const std::string there = describe(tensors), here = describe(trained);
  if (there != here) {
    refuse(path, stored.projection + " is " + there + " there, " + here +
                     " here: the rank, factor, decompose_both or weight_decompose is another");
  }
  constexpr double kTolerance = 1e-6;  // alpha is stored as a float32
  if (std::abs(stored.scale - scale) > kTolerance * std::abs(scale)) {
    refuse(path, "the scale of " + stored.projection + " is " + std::to_string(stored.scale) + " there, " +
                     std::to_string(scale) + " here: alpha is another");
  }
  for (size_t i = 0; i < tensors.size(); ++i) trained[i].second.copy_(tensors[i].second);
}

}  // namespace

void import_adapter(const std::string& path, const TrainableAdapter& adapter) {
  const c10::NoGradGuard no_grad;
  const Adapter stored = read(path, adapter);
  check_fit(path, stored, adapter);
  for (const auto& module : adapter.modules()) {
    const auto same = std::find_if(stored.modules.begin(), stored.modules.end(),
                                   [&](const AdapterModule& each) { return each.projection == module.name; });
    copy_module(path, *same, *module.delta, scale_of(adapter, *module.delta));
  }
}

int64_t epochs_in_name(const std::string& folder) {
  static const std::regex kEpoch(R"(epoch_(\d{1,9}))");
  const fs::path path = (fs::path(folder) / "").parent_path();  // without a slash at its end
  for (const std::string& name : {path.filename().string(), path.parent_path().filename().string()}) {
    std::smatch match;
    if (std::regex_search(name, match, kEpoch)) return std::stoll(match[1]);
  }
  return 0;
}

}  // namespace carillon
