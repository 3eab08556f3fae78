#include "core/checkpoint/tensor_file.h"

#include <sstream>

#include "core/runtime/error.h"

namespace carillon {

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const TensorFile::Entry& TensorFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(ErrorCode::kBadCheckpoint, path_ + ": there is no tensor '" + name + "'");
  return found->second;
}

}  // namespace carillon
