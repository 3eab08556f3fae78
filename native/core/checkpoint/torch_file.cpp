#include "core/checkpoint/torch_file.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/runtime/error.h"

namespace carillon {
namespace {

// Record layouts: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12, 4.3.16.
constexpr uint32_t kEndSignature = 0x06054b50, kDirectorySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr size_t kEndBytes = 22, kDirectoryBytes = 46, kLocalBytes = 30, kMaxComment = 65535;

/// Bounds-checked little-endian reads.
class Reader {
 public:
  Reader(const MappedFile& file, const std::string& path) : file_(file), path_(path) {}

  template <typename T>
  size_t number(size_t at) const {
    T value;
    std::memcpy(&value, bytes(at, sizeof(T)), sizeof(T));
    return value;
  }
  std::string text(size_t at, size_t size) const { return {bytes(at, size), size}; }
  const char* bytes(size_t at, size_t size) const {
    if (at > file_.size() || size > file_.size() - at) bad("it is truncated");
    return file_.data() + at;
  }
  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorCode::kBadCheckpoint, path_ + ": not a readable zip archive: " + what);
  }
  size_t size() const { return file_.size(); }

 private:
  const MappedFile& file_;
  const std::string& path_;
};

size_t find_end_record(const Reader& reader) {
  if (reader.size() < kEndBytes) reader.bad("too short");
  const size_t last = reader.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    if (reader.number<uint32_t>(last - back) == kEndSignature) return last - back;
  }
  reader.bad("the end record is missing");
}

}  // namespace

std::vector<StoredEntry> list_stored_zip(const MappedFile& archive, const std::string& path) {
  const Reader reader(archive, path);
  const size_t end = find_end_record(reader);
  const size_t count = reader.number<uint16_t>(end + 10);
  size_t at = reader.number<uint32_t>(end + 16);
  std::vector<StoredEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    if (reader.number<uint32_t>(at) != kDirectorySignature) reader.bad("the directory is damaged");
    const size_t name_size = reader.number<uint16_t>(at + 28);
    StoredEntry entry;
    entry.name = reader.text(at + kDirectoryBytes, name_size);
    entry.size = reader.number<uint32_t>(at + 24);
    if (reader.number<uint16_t>(at + 10) != 0) reader.bad("entry '" + entry.name + "' is compressed");
    const size_t local = reader.number<uint32_t>(at + 42);
    if (reader.number<uint32_t>(local) != kLocalSignature) reader.bad("entry '" + entry.name + "' has no local header");
    entry.begin = local + kLocalBytes + reader.number<uint16_t>(local + 26) + reader.number<uint16_t>(local + 28);
    reader.bytes(entry.begin, entry.size);
    entries.push_back(std::move(entry));
    at += kDirectoryBytes + name_size + reader.number<uint16_t>(at + 30) + reader.number<uint16_t>(at + 32);
  }
  return entries;
}

namespace {

/// Maximum number of metadata values. Real data sets have far fewer. The limit exists because each value is copied.
constexpr size_t kMaxScalars = 256;

/// Number of elements from the start of the storage to the last one that a view reads. -1 on overflow, for an empty
/// view, or for a negative offset or stride.
int64_t extent_of(const PickleTensor& view) {
  int64_t last = view.offset;
  bool sound = view.offset >= 0;
  for (size_t i = 0; i < view.sizes.size() && sound; ++i) {
    int64_t reach = 0;
    sound = view.sizes[i] > 0 && view.strides[i] >= 0 &&
            !__builtin_mul_overflow(view.sizes[i] - 1, view.strides[i], &reach) &&
            !__builtin_add_overflow(last, reach, &last);
  }
  return sound && last < std::numeric_limits<int64_t>::max() ? last + 1 : -1;
}

/// Number of elements of a view; -1 on overflow.
int64_t count_of(const PickleTensor& view) {
  int64_t count = 1;
  for (const int64_t size : view.sizes) {
    if (__builtin_mul_overflow(count, size, &count)) return -1;
  }
  return count;
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : TensorFile(path) {
  read_parts();
  const PickleValue top = unpickle(part("data.pkl"), path + ": data.pkl");
  if (const auto* const values = top.as<PickleValue::Dictionary>()) {
    values_ = *values;
  } else if (top.as<std::shared_ptr<const PickleTensor>>()) {
    values_ =
        std::make_shared<std::map<std::string, PickleValue>>(std::map<std::string, PickleValue>{{kTopTensor, top}});
  } else {
    bad("the top value is not a dictionary or tensor");
  }
  for (const auto& [key, value] : *values_) {
    const auto* const view = value.as<std::shared_ptr<const PickleTensor>>();
    if (view) entries_[key] = {.type = static_cast<uint32_t>((*view)->storage.dtype), .shape = (*view)->sizes};
  }
}

void TorchFile::read_parts() {
  // torch before 1.6 wrote a series of pickles instead of a zip archive.
  if (file_->size() > 1 && file_->data()[0] == '\x80') {
    bad("a bare pickle, as torch before 1.6 wrote it: load and save it again with a newer torch, or as safetensors");
  }
  for (const auto& entry : list_stored_zip(*file_, path_)) {
    const size_t folder_end = entry.name.find('/');
    if (folder_end == std::string::npos) bad("not a torch file: entry '" + entry.name + "' is not in a folder");
    parts_[entry.name.substr(folder_end + 1)] = {file_->data() + entry.begin, entry.size};
  }
  if (parts_.count("byteorder") > 0 && part("byteorder") != "little") bad("the numbers are not little-endian");
}

std::string_view TorchFile::part(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) bad("incomplete torch file: it has no entry '" + name + "'");
  return found->second;
}

void TorchFile::bad(const std::string& what) const { fail(ErrorCode::kBadCheckpoint, path_ + ": " + what); }

at::Tensor TorchFile::tensor(const std::string& key) const {
  const auto value = values_->find(key);
  if (value == values_->end()) bad("key '" + key + "' is missing");
  const auto* const view = value->second.as<std::shared_ptr<const PickleTensor>>();
  if (!view) bad("key '" + key + "' is not a tensor");
  const auto& [storage, offset, sizes, strides] = **view;
  if (sizes.size() != strides.size()) bad("key '" + key + "' has sizes and strides of different length");
  const auto bytes = part("data/" + storage.key);
  const size_t element_size = at::elementSize(storage.dtype);
  const auto stored = static_cast<int64_t>(bytes.size() / element_size);
  const int64_t extent = extent_of(**view), count = count_of(**view);
  if (stored != storage.elements || bytes.size() % element_size != 0) {
    bad("key '" + key + "' says its storage has " + std::to_string(storage.elements) + " elements, but the file has " +
        std::to_string(bytes.size()) + " bytes");
  }
  // A view can repeat elements. Without the limit on `count` the copy could need far more memory than the file's size.
  if (extent < 0 || extent > stored || count < 0 || count > stored) {
    bad("key '" + key + "' is empty or exceeds its storage of " + std::to_string(stored) + " elements");
  }
  // Copies the elements, because they may be unaligned in the file. Copies only the range of this view, because
  // thousands of views may share a storage.
  const bool is_bool = storage.dtype == at::kBool;
  const at::Tensor flat = at::empty({extent - offset}, is_bool ? at::kByte : storage.dtype);
  std::memcpy(flat.data_ptr(), bytes.data() + static_cast<size_t>(offset) * element_size, flat.nbytes());
  const at::Tensor dense = flat.as_strided(sizes, strides).contiguous();
  return is_bool ? dense.ne(0) : dense;  // a byte other than 0 and 1 is undefined as a C++ bool
}

TorchMetadata TorchFile::metadata_at(const std::string& key) const {
  TorchMetadata result;
  const auto value = values_->find(key);
  const auto* const dictionary = value == values_->end() ? nullptr : value->second.as<PickleValue::Dictionary>();
  if (!dictionary) return result;
  if ((*dictionary)->size() > kMaxScalars) {
    bad("key '" + key + "' has more than " + std::to_string(kMaxScalars) + " parts");
  }
  for (const auto& [name, item] : **dictionary) {
    if (item.as<std::nullptr_t>()) result[name] = nullptr;
    if (const auto* const flag = item.as<bool>()) result[name] = *flag;
    if (const auto* const number = item.as<int64_t>()) result[name] = *number;
    if (const auto* const text = item.as<PickleValue::Text>()) result[name] = **text;
  }
  return result;
}

namespace {

template <typename Integer>
std::string little_endian(Integer value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// An opcode with its operand.
std::string opcode(char code, const std::string& operand) {
  std::string bytes(1, code);
  return bytes += operand;
}

// Each function below returns the opcodes of one value.

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
      fail(ErrorCode::kBadArgument, std::string("tensors of type ") + at::toString(dtype) + " cannot be written");
  }
}

/// Opcodes that rebuild a contiguous tensor from the entry `data/<index>`, which holds its elements.
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
                      const std::string& metadata_key, const TorchMetadata& metadata) {
  std::string items, metadata_items;
  std::vector<at::Tensor> dense;
  for (const auto& [key, tensor] : tensors) {
    dense.push_back(tensor.cpu().contiguous());
    items += text(key) + rebuilt(dense.back(), dense.size() - 1);
  }
  for (const auto& [key, value] : metadata) metadata_items += text(key) + scalar(value);
  items += text(metadata_key) + "}(" + metadata_items + "u";

  std::string archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
    archive.append(static_cast<const char*>(data), size);
    return size;
  });
  const auto add = [&](const std::string& name, std::string_view bytes) {
    writer.writeRecord(name, bytes.data(), bytes.size());
  };
  add("data.pkl", "\x80\x02}(" + items + "u.");
  add("byteorder", "little");
  for (size_t i = 0; i < dense.size(); ++i) {
    writer.writeRecord("data/" + std::to_string(i), dense[i].const_data_ptr(), dense[i].nbytes());
  }
  writer.writeEndOfFile();
  if (archive.size() > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorCode::kBadArgument, path + " would be larger than 4 GiB, the limit of torch files");
  }
  write_file_atomically(path, archive);
}

}  // namespace carillon
