// carillon-parity --root DIR [--checkpoints DIR] [--device auto|cpu|cuda] [--dtype float32|bfloat16]
//
// Compares the engine with every golden of ROOT/goldens. Reads the weights from ROOT/checkpoints or --checkpoints.
// Prints the relative error of each case, then `N passed, N failed`. Cases printed as REPORT count as neither.
// Exits with 1 if a case failed. README.md documents the format and the limits of goldens.
#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/runtime/error.h"
#include "kernels/cpu.h"
#include "test/parity/case.h"
#include "test/parity/noise_check.h"

namespace carillon::parity {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string root, checkpoints, device = "cpu", dtype = "float32", quantization = "none";
};

bool is_quantized(const Placement& placement) {
  return placement.weights == WeightForm::kInt8 || placement.weights == WeightForm::kInt4;
}

/// Largest relative error that passes; nullopt if every error is only reported. The parameter `largest_error` of a golden
/// replaces the limit of float32 on a CPU.
std::optional<double> limit_of(const Case& golden, Depth depth) {
  const Placement& placement = golden.placement;
  const bool is_module = depth == Depth::kModule;
  if (is_quantized(placement)) return std::nullopt;
  if (placement.dtype == at::kBFloat16) {
    if (depth != Depth::kVae) return is_module ? 2e-2 : 4e-2;
    const bool rounds_layers = placement.device.is_cuda() || !kernels::has_float_tiles() || kernels::has_amx();
    return rounds_layers ? std::nullopt : std::optional(1e-2);
  }
  if (placement.device.is_cuda()) return is_module ? 1e-4 : 1e-3;
  return golden.params.get_double("largest_error", is_module ? 1e-5 : depth == Depth::kSampler ? 1e-4 : 1e-3);
}

enum class Verdict { kPassed, kReported, kFailed };

void print(const char* verdict, const Case& golden, const std::string& detail) {
  std::printf("%-6s  %-28s  %-18s  %s\n", verdict, golden.name.c_str(), golden.module.c_str(), detail.c_str());
}

std::string error_text(const std::vector<Case::Comparison>& comparisons, std::optional<double> limit) {
  std::string text;
  for (const auto& comparison : comparisons) {
    char part[256];
    if (comparison.integer) {
      std::snprintf(part, sizeof part, "%s %.3g%% unequal", comparison.output.c_str(), 100 * comparison.error);
    } else {
      std::snprintf(part, sizeof part, "%s %.2e (%.0f dB)", comparison.output.c_str(), comparison.error,
                    -20 * std::log10(comparison.error));
    }
    text += (text.empty() ? "" : ", ") + std::string(part);
  }
  char tail[64];
  std::snprintf(tail, sizeof tail, limit ? "  (limit %.0e)" : "  (no limit)", limit.value_or(0));
  return text + tail;
}

Verdict judge(const Case& golden, Depth depth) {
  const auto limit = limit_of(golden, depth);
  // Integers are codes or tokens. bfloat16 and quantization can flip some, so these errors are then only reported.
  const bool gate_integers = golden.placement.dtype != at::kBFloat16 && !is_quantized(golden.placement);
  bool gated = false, failed = false;
  for (const auto& comparison : golden.comparisons()) {
    if (comparison.integer ? !gate_integers : !limit.has_value()) {
      failed = failed || !std::isfinite(comparison.error);
      continue;
    }
    gated = true;
    failed = failed || !(comparison.error <= (comparison.integer ? 0.0 : *limit));
  }
  return failed ? Verdict::kFailed : gated ? Verdict::kPassed : Verdict::kReported;
}

Verdict run(Case& golden) {
  const Module* module = find_module(golden.module);
  if (!module) {
    print("FAIL", golden, "unknown module '" + golden.module + "'");
    return Verdict::kFailed;
  }
  try {
    module->function(golden);
  } catch (const std::exception& error) {
    print("FAIL", golden, error.what());
    return Verdict::kFailed;
  }
  if (const auto missing = golden.missing(); !missing.empty()) {
    print("FAIL", golden, "output '" + missing.front() + "' was not computed");
    return Verdict::kFailed;
  }
  const Verdict verdict = judge(golden, module->depth);
  print(verdict == Verdict::kFailed   ? "FAIL"
        : verdict == Verdict::kPassed ? "ok"
                                      : "REPORT",
        golden, error_text(golden.comparisons(), limit_of(golden, module->depth)));
  return verdict;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    std::string* value = name == "--root"           ? &options.root
                         : name == "--checkpoints"  ? &options.checkpoints
                         : name == "--device"       ? &options.device
                         : name == "--dtype"        ? &options.dtype
                         : name == "--quantization" ? &options.quantization
                                                    : nullptr;
    if (!value) fail(ErrorCode::kBadArgument, "unknown option '" + name + "'");
    if (++i == argc) fail(ErrorCode::kBadArgument, name + " needs a value");
    *value = argv[i];
  }
  if (options.root.empty())
    fail(ErrorCode::kBadArgument, "--root DIR is needed: a directory with goldens/ and checkpoints/");
  if (options.checkpoints.empty()) options.checkpoints = (fs::path(options.root) / "checkpoints").string();
  return options;
}

std::vector<std::string> list_goldens(const std::string& root) {
  const fs::path directory = fs::path(root) / "goldens";
  if (!fs::is_directory(directory)) fail(ErrorCode::kBadArgument, directory.string() + " is not a directory");
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  }
  if (paths.empty()) fail(ErrorCode::kBadArgument, directory.string() + " contains no .safetensors golden");
  std::sort(paths.begin(), paths.end());
  return paths;
}

int run_all(const Options& options) {
  const Placement placement = choose_placement(options.device, options.dtype, options.quantization);
  // The limits require full float32: TensorFloat-32 is not precise enough.
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowTF32CuDNN(false);
  int passed = 0, failed = check_noise(options.root) ? 0 : 1;
  for (const auto& path : list_goldens(options.root)) {
    try {
      Case golden(options.checkpoints, path, placement);
      const Verdict verdict = run(golden);
      passed += verdict == Verdict::kPassed;
      failed += verdict == Verdict::kFailed;
    } catch (const std::exception& error) {
      std::printf("FAIL    %s\n", error.what());
      ++failed;
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace carillon::parity

int main(int argc, char** argv) {
  try {
    return carillon::parity::run_all(carillon::parity::parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon-parity: %s\n", error.what());
    return 1;
  }
}
