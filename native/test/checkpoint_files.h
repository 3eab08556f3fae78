#pragma once
// Writes the files of a checkpoint, so that tests read what real writers produce.
#include <ATen/ATen.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace carillon::test {

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.data_ptr()), dense.nbytes()};
}

template <typename Integer>
std::string little_endian(Integer value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The bytes of a .safetensors file with this header and data.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  return little_endian<uint64_t>(header.size()) + header + data;
}

inline const char* safetensors_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kDouble:
      return "F64";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    default:
      throw std::runtime_error("no safetensors type for this test tensor");
  }
}

using Tensors = std::map<std::string, at::Tensor>;

inline void write_safetensors(const std::string& path, const Tensors& tensors, const std::string& metadata = "{}") {
  std::ostringstream header;
  std::string data;
  header << "{\"__metadata__\":" << metadata;
  for (const auto& [name, tensor] : tensors) {
    const std::string bytes = bytes_of(tensor);
    header << ",\"" << name << "\":{\"dtype\":\"" << safetensors_type(tensor.scalar_type()) << "\",\"shape\":[";
    for (int64_t i = 0; i < tensor.dim(); ++i) header << (i ? "," : "") << tensor.size(i);
    header << "],\"data_offsets\":[" << data.size() << "," << data.size() + bytes.size() << "]}";
    data += bytes;
  }
  std::string text = header.str() + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  write_file(path, safetensors_bytes(text, data));
}

}  // namespace carillon::test
