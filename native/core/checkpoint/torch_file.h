#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/checkpoint/file_io.h"
#include "core/checkpoint/pickle.h"

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

/// A value beside tensors.
using TorchScalar = std::variant<std::nullptr_t, bool, int64_t, std::string>;
using TorchNotes = std::map<std::string, TorchScalar>;

/// A file of torch.save whose top value is a dictionary. Nothing in it is executed.
class TorchFile {
 public:
  /// Throws kBadCheckpoint naming the file, here and below also the key.
  static TorchFile open(const std::string& path);

  /// A contiguous copy on the CPU in the stored dtype, whatever strides the file has. Throws kBadCheckpoint where it is
  /// missing, is no tensor, or leaves its storage.
  at::Tensor tensor(const std::string& key) const;
  /// The plain values of the dictionary at `key`, those of other types left out; empty where there is none.
  TorchNotes notes(const std::string& key) const;

 private:
  TorchFile(std::string path, std::shared_ptr<const MappedFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  void read_entries();
  std::string_view entry(const std::string& name) const;
  [[noreturn]] void bad(const std::string& what) const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, std::string_view> entries_;  // names without the folder they all lie in
  PickleValue::Dictionary values_;
};

/// Writes tensors, in order, and one dictionary of notes, so that Python's `torch.load(weights_only=True)` reads the
/// file, and so do loaders that know the plainest opcodes alone and map the entries, which begin at multiples of 64. Tensors
/// keep their dtypes; they are stored contiguous. A file at `path` is replaced once the new one is whole.
/// Throws kBadArgument for an integer beyond 32 bits, which old loaders refuse, or a file beyond 4 GiB; kStorage where the disk refuses.
void write_torch_file(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                      const std::string& notes_key, const TorchNotes& notes);

}  // namespace carillon
