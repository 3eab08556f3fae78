#pragma once
// Writes checkpoint files byte by byte, as safetensors, GGUF and torch.save do.
#include <ATen/ATen.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

/// A text as pickle stores it.
inline std::string pickled_text(const std::string& text) { return "X" + little_endian<uint32_t>(text.size()) + text; }

/// Bytes of a .safetensors file with this header and data.
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

/// A tensor of a GGUF file: dimensions (innermost first), type number and bytes.
struct GgufTensor {
  std::string name;
  std::vector<uint64_t> dimensions;
  uint32_t type;
  std::string data;
};

/// Bytes of a GGUF file of version 3 with metadata of every type and tensors aligned to 32 bytes.
inline std::string gguf_bytes(const std::vector<GgufTensor>& tensors) {
  const auto u32 = [](size_t value) { return little_endian<uint32_t>(static_cast<uint32_t>(value)); };
  const auto u64 = [](uint64_t value) { return little_endian(value); };
  const auto text = [&](const std::string& value) { return u64(value.size()) + value; };
  const auto padded = [](std::string bytes) {
    bytes.resize((bytes.size() + 31) / 32 * 32);
    return bytes;
  };
  std::string file = "GGUF" + u32(3) + u64(tensors.size()) + u64(4), data;
  file += text("general.architecture") + u32(8) + text("acestep-dit");
  file += text("acestep.fsq_input_levels") + u32(9) + u32(5) + u64(2) + u32(8) + u32(5);
  file += text("tokenizer.ggml.tokens") + u32(9) + u32(8) + u64(2) + text("a") + text("bc");
  file += text("acestep.is_turbo") + u32(7) + std::string(1, '\1');
  for (const GgufTensor& tensor : tensors) {
    data = padded(data);
    file += text(tensor.name) + u32(tensor.dimensions.size());
    for (const uint64_t extent : tensor.dimensions) file += u64(extent);
    file += u32(tensor.type) + u64(data.size());
    data += tensor.data;
  }
  return padded(file) + data;
}

/// Bytes of a zip archive with these entries, as torch.save writes it. `method` 0 is stored, 8 deflated.
inline std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& entries, uint16_t method = 0) {
  const auto u16 = [](size_t value) { return little_endian<uint16_t>(static_cast<uint16_t>(value)); };
  const auto u32 = [](size_t value) { return little_endian<uint32_t>(static_cast<uint32_t>(value)); };
  const std::string padding = "FB" + u16(5) + "ZZZZZ";  // an extra field, with which torch aligns the data
  std::string archive, directory;
  for (const auto& [name, data] : entries) {
    const size_t offset = archive.size();
    const std::string sizes = u32(0) + u32(data.size()) + u32(data.size()) + u16(name.size());
    archive +=
        u32(0x04034b50) + u16(0) + u16(0) + u16(method) + u32(0) + sizes + u16(padding.size()) + name + padding + data;
    directory += u32(0x02014b50) + u16(0) + u16(0) + u16(0) + u16(method) + u32(0) + sizes + u16(0) + u16(0) + u16(0) +
                 u16(0) + u32(0) + u32(offset) + name;
  }
  const std::string count = u16(entries.size());
  return archive + directory + u32(0x06054b50) + u16(0) + u16(0) + count + count + u32(directory.size()) +
         u32(archive.size()) + u16(0);
}

}  // namespace carillon::test
