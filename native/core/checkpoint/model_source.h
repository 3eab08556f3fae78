#pragma once
#include <string>
#include <utility>

namespace carillon {

/// Location of a model: a directory with a config.json, or a .safetensors file. In a file, only the tensors whose names
/// begin with `prefix` belong to the model, and the caller passes the config.
struct ModelSource {
  std::string path;
  std::string prefix;  // files only: includes the final dot; empty to read all tensors
  std::string config;  // files only: the text of a config.json

  ModelSource() = default;
  ModelSource(std::string directory) : path(std::move(directory)) {}
  ModelSource(const char* directory) : path(directory) {}
  ModelSource(std::string file, std::string tensors, std::string config_text)
      : path(std::move(file)), prefix(std::move(tensors)), config(std::move(config_text)) {}

  bool is_file() const { return !config.empty(); }
};

}  // namespace carillon
