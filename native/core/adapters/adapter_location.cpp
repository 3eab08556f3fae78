#include "core/adapters/adapter_location.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPeftWeights = "adapter_model.safetensors";
constexpr const char* kPeftConfig = "adapter_config.json";
constexpr const char* kPeftFolder = "adapter";
constexpr const char* kLokrWeights = "lokr_weights.safetensors";
constexpr const char* kLokrConfig = "lokr_config";  // in the metadata
constexpr const char* kExtension = ".safetensors";

/// nullopt where `folder` holds nothing of a PEFT adapter; one half of one is an error.
std::optional<AdapterLocation> find_peft(const fs::path& folder) {
  const fs::path weights = folder / kPeftWeights, config = folder / kPeftConfig;
  const bool has_weights = fs::exists(weights), has_config = fs::exists(config);
  if (!has_weights && !has_config) return std::nullopt;
  if (!has_config) fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftConfig);
  if (!has_weights) {
    fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no " + kPeftWeights + " beside " + kPeftConfig);
  }
  return AdapterLocation{weights.string(), config.string()};
}

/// Whether a file of any name says that it is a LoKr.
bool is_lokr(const std::string& path) { return Safetensors::open(path).metadata().count(kLokrConfig) != 0; }

AdapterLocation find_in(const fs::path& folder) {
  if (const auto found = find_peft(folder)) return *found;
  if (const auto found = find_peft(folder / kPeftFolder)) return *found;
  if (fs::exists(folder / kLokrWeights)) return {(folder / kLokrWeights).string(), std::nullopt};

  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kExtension) files.push_back(entry.path().string());
  }
  if (files.size() == 1) return {files[0], std::nullopt};
  if (files.empty()) {
    fail(ErrorCode::kBadCheckpoint, folder.string() + ": there is no adapter here (looked for " + kPeftConfig +
                                        " here and in " + kPeftFolder + "/, " + kLokrWeights +
                                        ", and any .safetensors file)");
  }
  std::vector<std::string> lokr_files;
  std::copy_if(files.begin(), files.end(), std::back_inserter(lokr_files), is_lokr);
  if (lokr_files.size() == 1) return {lokr_files[0], std::nullopt};
  std::sort(files.begin(), files.end());
  fail(ErrorCode::kBadCheckpoint, folder.string() + ": holds " + std::to_string(files.size()) +
                                      " .safetensors files, " + std::to_string(lokr_files.size()) + " of them with " +
                                      kLokrConfig + "; name one of them, such as " + files[0]);
}

}  // namespace

AdapterLocation locate_adapter(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    try {
      return find_in(path);
    } catch (const fs::filesystem_error& fault) {
      fail(ErrorCode::kBadCheckpoint, path + ": cannot be read: " + fault.code().message());
    }
  }
  if (!fs::exists(status)) fail(ErrorCode::kBadCheckpoint, path + ": there is no such file or folder");
  if (fs::path(path).extension() != kExtension) {
    fail(ErrorCode::kBadCheckpoint, path + ": adapters are read from .safetensors files and folders that hold one");
  }
  const fs::path config = fs::path(path).parent_path() / kPeftConfig;
  return {path, fs::exists(config, error) ? std::optional(config.string()) : std::nullopt};
}

}  // namespace carillon
