#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

#include "core/checkpoint/stored_zip.h"
#include "core/checkpoint/torch_file.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

template <typename Integer>
std::string little_endian(Integer value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// An opcode and what it reads from the stream.
std::string opcode(char code, const std::string& operand) {
  std::string bytes(1, code);
  return bytes += operand;
}

// Each function below gives the opcodes of one value.

std::string global(const std::string& module, const std::string& name) {
  return opcode('c', module + "\n" + name + "\n");
}
std::string tuple(const std::string& items) { return opcode('(', items) + "t"; }
std::string boolean(bool value) { return value ? "\x88" : "\x89"; }

std::string text(const std::string& value) {
  return opcode('X', little_endian(static_cast<uint32_t>(value.size())) + value);
}

std::string integer(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kBadArgument, std::to_string(value) + " does not fit the 32 bits of an integer in a torch file");
  }
  return opcode('J', little_endian(static_cast<int32_t>(value)));
}

std::string integers(at::IntArrayRef values) {
  std::string items;
  for (const int64_t value : values) items += integer(value);
  return tuple(items);
}

std::string scalar(const TorchScalar& value) {
  if (const auto* const flag = std::get_if<bool>(&value)) return boolean(*flag);
  if (const auto* const number = std::get_if<int64_t>(&value)) return integer(*number);
  if (const auto* const words = std::get_if<std::string>(&value)) return text(*words);
  return "N";
}

const char* storage_class(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "FloatStorage";
    case at::kBFloat16:
      return "BFloat16Storage";
    case at::kHalf:
      return "HalfStorage";
    case at::kBool:
      return "BoolStorage";
    case at::kLong:
      return "LongStorage";
    default:
      fail(ErrorCode::kBadArgument, std::string("tensors of type ") + at::toString(dtype) + " are not written");
  }
}

/// `tensor` is contiguous and the whole of the entry `data/<index>`.
std::string rebuilt(const at::Tensor& tensor, size_t index) {
  const auto storage = tuple(text("storage") + global("torch", storage_class(tensor.scalar_type())) +
                             text(std::to_string(index)) + text("cpu") + integer(tensor.numel()));
  const auto hooks = global("collections", "OrderedDict") + ")R";
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage + "Q" + integer(0) + integers(tensor.sizes()) + integers(tensor.strides()) + boolean(false) +
               hooks) +
         "R";
}

}  // namespace

void write_torch_file(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                      const std::string& notes_key, const TorchNotes& notes) {
  std::string items;
  std::vector<at::Tensor> dense;  // keeps the bytes that the entries name
  std::vector<NewEntry> entries;
  for (const auto& [key, tensor] : tensors) {
    const size_t index = dense.size();
    dense.push_back(tensor.cpu().contiguous());
    items += text(key) + rebuilt(dense.back(), index);
    entries.push_back({"data/" + std::to_string(index),
                       {static_cast<const char*>(dense.back().const_data_ptr()), dense.back().nbytes()}});
  }
  std::string note_items;
  for (const auto& [key, value] : notes) note_items += text(key) + scalar(value);
  items += text(notes_key) + "}(" + note_items + "u";

  const std::string pickle = "\x80\x02}(" + items + "u.";
  entries.insert(entries.begin(), {{"data.pkl", pickle}, {"byteorder", "little"}, {"version", "3\n"}});
  for (auto& entry : entries) entry.name = "archive/" + entry.name;
  write_stored_zip(path, entries);
}

}  // namespace carillon
