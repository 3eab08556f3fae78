#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/mapped_file.h"

namespace carillon {

/// One uncompressed file inside a zip archive.
struct StoredEntry {
  std::string name;
  size_t begin;  // bytes from the start of the archive
  size_t size;
};

/// The files of a zip archive whose entries are all stored, not deflated: what torch.save writes.
/// Throws kBadCheckpoint naming `path` for anything else, or where a range leaves the file.
std::vector<StoredEntry> list_stored_zip(const MappedFile& archive, const std::string& path);

/// A file to be put into an archive. The bytes are the caller's.
struct NewEntry {
  std::string name;
  std::string_view bytes;
};

/// Writes an archive of stored entries whose bytes begin at multiples of 64, so that it can be mapped. A file at `path`
/// is replaced once the new one is whole. Throws kBadArgument beyond 4 GiB, kStorage where the disk refuses.
void write_stored_zip(const std::string& path, const std::vector<NewEntry>& entries);

}  // namespace carillon
