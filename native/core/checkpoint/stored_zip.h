#pragma once
#include <cstddef>
#include <string>
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

}  // namespace carillon
