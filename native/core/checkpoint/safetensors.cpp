#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"

namespace carillon {

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data is used in place and is little-endian");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

const std::map<std::string, at::ScalarType>& types_by_name() {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
      {"I32", at::kInt},    {"I16", at::kShort}, {"I8", at::kChar},  {"U8", at::kByte},       {"BOOL", at::kBool}};
  return kTypes;
}

std::optional<at::ScalarType> scalar_type(const std::string& name) {
  const auto type = types_by_name().find(name);
  return type == types_by_name().end() ? std::nullopt : std::optional(type->second);
}

const std::string& type_name(at::ScalarType dtype) {
  for (const auto& [name, type] : types_by_name()) {
    if (type == dtype) return name;
  }
  fail(ErrorCode::kBadArgument, std::string("safetensors has no type ") + c10::toString(dtype));
}

/// prod(shape) * element_size; nullopt on overflow.
std::optional<size_t> byte_size(const std::vector<int64_t>& shape, size_t element_size) {
  size_t size = element_size;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(size, static_cast<size_t>(extent), &size)) return std::nullopt;
  }
  return size;
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : TensorFile(path) {
  uint64_t length = 0;
  if (file_->size() < kLengthBytes) fail(ErrorCode::kBadCheckpoint, path_ + ": too short for a safetensors file");
  std::memcpy(&length, file_->data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > file_->size() - kLengthBytes) {
    fail(ErrorCode::kBadCheckpoint, path_ + ": not a safetensors file, or truncated: the header would have " +
                                        std::to_string(length) + " bytes, the file has " +
                                        std::to_string(file_->size()));
  }
  const size_t data_begin = kLengthBytes + length;
  const size_t data_size = file_->size() - data_begin;
  const Json header = Json::parse({file_->data() + kLengthBytes, length}, path_ + " (header)");

  std::vector<std::pair<const std::string*, const Entry*>> by_offset;
  for (const auto& [name, fields] : header.as_object()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : fields.as_object()) metadata_.emplace(key, value.as_string());
      continue;
    }
    const auto bad = [&, &name = name](const std::string& what) {
      fail(ErrorCode::kBadCheckpoint, path_ + ": tensor '" + name + "' " + what);
    };
    const std::string& dtype = fields.at("dtype").as_string();
    const auto type = scalar_type(dtype);
    if (!type) bad("has type " + dtype + ", which is not supported; convert it to F32, F16 or BF16");
    const auto shape = fields.get_ints("shape");
    const auto offsets = fields.get_ints("data_offsets");
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0]) bad("has invalid data_offsets");
    const size_t begin = static_cast<size_t>(offsets[0]), end = static_cast<size_t>(offsets[1]);
    if (end > data_size) {
      bad("ends at byte " + std::to_string(end) + " of " + std::to_string(data_size) + ": the file is truncated");
    }
    if (byte_size(shape, c10::elementSize(*type)) != end - begin) bad("has a shape that does not fit its data_offsets");
    const auto entry =
        entries_.emplace(name, Entry{static_cast<uint32_t>(*type), shape, data_begin + begin, end - begin}).first;
    by_offset.emplace_back(&entry->first, &entry->second);
  }

  std::sort(by_offset.begin(), by_offset.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->size) < std::pair(b.second->begin, b.second->size);
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const Entry& previous = *by_offset[i - 1].second;
    if (previous.begin + previous.size > by_offset[i].second->begin) {
      fail(ErrorCode::kBadCheckpoint,
           path_ + ": tensors '" + *by_offset[i - 1].first + "' and '" + *by_offset[i].first + "' overlap");
    }
  }
}

at::Tensor Safetensors::tensor(const std::string& name) const {
  const Entry& found = entry(name);
  const char* data = file_->data() + found.begin;
  const auto dtype = static_cast<at::ScalarType>(found.type);
  const auto options = at::TensorOptions().dtype(dtype);
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(dtype) != 0) {
    // Tensors in a file may be unaligned, but libtorch needs aligned elements.
    at::Tensor aligned = at::empty(found.shape, options);
    // memcpy does not accept the null pointer of an empty tensor.
    if (found.size > 0) std::memcpy(aligned.data_ptr(), data, found.size);
    return aligned;
  }
  return at::from_blob(const_cast<char*>(data), found.shape, [file = file_](void*) {}, options);
}

void save_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  using Item = std::pair<std::string, at::Tensor>;
  std::vector<Item> items(tensors.begin(), tensors.end());
  // Wide elements first: the header ends at a multiple of 8 bytes, so all elements are aligned without gaps.
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.second.element_size() > b.second.element_size(); });

  std::map<std::string, std::string> header, texts;
  for (const auto& [key, value] : metadata) texts[key] = json_string(value);
  if (!texts.empty()) header["__metadata__"] = json_object(texts);
  size_t offset = 0;
  for (const auto& [name, tensor] : items) {
    std::vector<std::string> shape;
    for (const int64_t extent : tensor.sizes()) shape.push_back(std::to_string(extent));
    const size_t end = offset + tensor.nbytes();
    header[name] = json_object({{"dtype", json_string(type_name(tensor.scalar_type()))},
                                {"shape", json_array(shape)},
                                {"data_offsets", json_array({std::to_string(offset), std::to_string(end)})}});
    offset = end;
  }
  std::string text = json_object(header);
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');

  AtomicFile file(path);
  const uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text);
  for (const auto& [name, tensor] : items) {
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    file.write(dense.const_data_ptr(), dense.nbytes());
  }
  file.commit();
}

}  // namespace carillon
