#include "core/checkpoint/torch_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>

#include "core/checkpoint/stored_zip.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Far beyond what a data set says of a song: every note is a copy of its text.
constexpr size_t kMaxNotes = 256;

/// Elements from the first to behind the last that the view reaches; -1 where that is no number or a size is negative.
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

/// -1 where it is no number.
int64_t count_of(const PickleTensor& view) {
  int64_t count = 1;
  for (const int64_t size : view.sizes) {
    if (__builtin_mul_overflow(count, size, &count)) return -1;
  }
  return count;
}

}  // namespace

TorchFile TorchFile::open(const std::string& path) {
  TorchFile file(path, MappedFile::open(path));
  file.read_entries();
  const PickleValue top = unpickle(file.entry("data.pkl"), path + ": data.pkl");
  const auto* const values = top.as<PickleValue::Dictionary>();
  if (!values) file.bad("it does not hold a dictionary");
  file.values_ = *values;
  return file;
}

void TorchFile::read_entries() {
  for (const auto& entry : list_stored_zip(*file_, path_)) {
    const size_t folder_end = entry.name.find('/');
    if (folder_end == std::string::npos) bad("not a torch file: entry '" + entry.name + "' lies in no folder");
    entries_[entry.name.substr(folder_end + 1)] = {file_->data() + entry.begin, entry.size};
  }
  if (entries_.count("byteorder") > 0 && entry("byteorder") != "little") bad("its numbers are not little-endian");
}

std::string_view TorchFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) bad("not a whole torch file: it has no entry '" + name + "'");
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
  const auto bytes = entry("data/" + storage.key);
  const auto stored = static_cast<int64_t>(bytes.size() / at::elementSize(storage.dtype));
  const int64_t extent = extent_of(**view), count = count_of(**view);
  if (stored != storage.elements || bytes.size() % at::elementSize(storage.dtype) != 0) {
    bad("key '" + key + "' says its storage has " + std::to_string(storage.elements) + " elements, but the file has " +
        std::to_string(bytes.size()) + " bytes of it");
  }
  // A view that repeats elements could ask for more memory than any file has.
  if (extent < 0 || extent > stored || count < 0 || count > stored) {
    bad("key '" + key + "' is empty or leaves its storage of " + std::to_string(stored) + " elements");
  }
  // Copied whole, as nothing aligns it in the file.
  const bool is_bool = storage.dtype == at::kBool;
  const at::Tensor flat = at::empty({stored}, is_bool ? at::kByte : storage.dtype);
  std::memcpy(flat.data_ptr(), bytes.data(), bytes.size());
  const at::Tensor dense = flat.as_strided(sizes, strides, offset).contiguous();
  return is_bool ? dense.ne(0) : dense;  // a bool of another byte than 0 and 1 is undefined
}

TorchNotes TorchFile::notes(const std::string& key) const {
  TorchNotes notes;
  const auto value = values_->find(key);
  const auto* const dictionary = value == values_->end() ? nullptr : value->second.as<PickleValue::Dictionary>();
  if (!dictionary) return notes;
  if ((*dictionary)->size() > kMaxNotes) bad("key '" + key + "' has more than " + std::to_string(kMaxNotes) + " parts");
  for (const auto& [name, note] : **dictionary) {
    if (note.as<std::nullptr_t>()) notes[name] = nullptr;
    if (const auto* const flag = note.as<bool>()) notes[name] = *flag;
    if (const auto* const number = note.as<int64_t>()) notes[name] = *number;
    if (const auto* const text = note.as<PickleValue::Text>()) notes[name] = **text;
  }
  return notes;
}

}  // namespace carillon
