#include <array>
#include <cstdint>
#include <limits>

#include "core/checkpoint/atomic_file.h"
#include "core/checkpoint/stored_zip.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

// Record layouts: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12, 4.3.16.
constexpr uint16_t kVersion = 20, kDate = 0x21;  // 1980-01-01: equal contents give equal bytes
constexpr size_t kLocalBytes = 30, kExtraHeaderBytes = 4, kAlignment = 64;

/// The checksum of zip archives (polynomial 0xEDB88320, reflected).
uint32_t crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t rest = byte;
      for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320u : 0u);
      table[byte] = rest;
    }
    return table;
  }();
  uint32_t rest = ~0u;
  for (const char byte : bytes) rest = rest >> 8 ^ kTable[(rest ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~rest;
}

std::string u16(size_t value) { return {static_cast<char>(value & 0xff), static_cast<char>(value >> 8 & 0xff)}; }
std::string u32(size_t value) { return u16(value) + u16(value >> 16); }

/// An extra field that fills up to the next multiple of 64. Its header needs four bytes itself.
std::string padding_at(size_t position) {
  const size_t fill = (kAlignment - (position + kExtraHeaderBytes) % kAlignment) % kAlignment;
  return "FB" + u16(fill) + std::string(fill, 'Z');
}

}  // namespace

void write_stored_zip(const std::string& path, const std::vector<NewEntry>& entries) {
  AtomicFile file(path);
  size_t offset = 0;
  const auto write = [&](std::string_view bytes) {
    offset += bytes.size();
    if (offset > std::numeric_limits<uint32_t>::max()) {
      fail(ErrorCode::kBadArgument, path + " would be larger than 4 GiB, the limit of its format");
    }
    file.write(bytes);
  };
  std::string directory;
  for (const auto& [name, bytes] : entries) {
    const std::string sizes = u32(crc32(bytes)) + u32(bytes.size()) + u32(bytes.size()) + u16(name.size());
    const std::string head = u16(kVersion) + u16(0) + u16(0) + u16(0) + u16(kDate) + sizes;
    directory +=
        u32(0x02014b50) + u16(kVersion) + head + u16(0) + u16(0) + u16(0) + u16(0) + u32(0) + u32(offset) + name;
    const std::string padding = padding_at(offset + kLocalBytes + name.size());
    write(u32(0x04034b50) + head + u16(padding.size()) + name + padding);
    write(bytes);
  }
  const size_t begin = offset;
  write(directory);
  const std::string count = u16(entries.size());
  write(u32(0x06054b50) + u16(0) + u16(0) + count + count + u32(directory.size()) + u32(begin) + u16(0));
  file.commit();
}

}  // namespace carillon
