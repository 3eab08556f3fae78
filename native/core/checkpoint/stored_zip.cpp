#include "core/checkpoint/stored_zip.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

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
  if (reader.size() < kEndBytes) reader.bad("it is too short");
  const size_t last = reader.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    if (reader.number<uint32_t>(last - back) == kEndSignature) return last - back;
  }
  reader.bad("it has no end record");
}

}  // namespace

std::vector<StoredEntry> list_stored_zip(const MappedFile& archive, const std::string& path) {
  const Reader reader(archive, path);
  const size_t end = find_end_record(reader);
  const size_t count = reader.number<uint16_t>(end + 10);
  size_t at = reader.number<uint32_t>(end + 16);
  std::vector<StoredEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    if (reader.number<uint32_t>(at) != kDirectorySignature) reader.bad("its directory is damaged");
    const size_t name_size = reader.number<uint16_t>(at + 28);
    StoredEntry entry;
    entry.name = reader.text(at + kDirectoryBytes, name_size);
    entry.size = reader.number<uint32_t>(at + 24);
    if (reader.number<uint16_t>(at + 10) != 0) reader.bad("entry '" + entry.name + "' is compressed");
    const size_t local = reader.number<uint32_t>(at + 42);
    if (reader.number<uint32_t>(local) != kLocalSignature) reader.bad("entry '" + entry.name + "' has no header");
    entry.begin = local + kLocalBytes + reader.number<uint16_t>(local + 26) + reader.number<uint16_t>(local + 28);
    reader.bytes(entry.begin, entry.size);
    entries.push_back(std::move(entry));
    at += kDirectoryBytes + name_size + reader.number<uint16_t>(at + 30) + reader.number<uint16_t>(at + 32);
  }
  return entries;
}

}  // namespace carillon
