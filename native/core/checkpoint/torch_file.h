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
#include "core/checkpoint/tensor_file.h"

namespace carillon {

/// One uncompressed file inside a zip archive.
struct StoredEntry {
  std::string name;
  size_t begin;  // bytes from the start of the archive
  size_t size;
};

/// Lists the files of a zip archive with uncompressed entries, as torch.save writes it. Throws kBadCheckpoint naming
/// `path` if the archive has another form or an entry lies outside of it.
std::vector<StoredEntry> list_stored_zip(const MappedFile& archive, const std::string& path);

/// A value of a torch file that is not a tensor, such as a caption or a number of frames.
using TorchScalar = std::variant<std::nullptr_t, bool, int64_t, std::string>;
using TorchMetadata = std::map<std::string, TorchScalar>;

/// A file written by torch.save. Its top-level value is a dictionary, which contains the tensors, or one tensor with
/// the key kTopTensor. Code in the file is not executed.
class TorchFile : public TensorFile {
 public:
  static constexpr const char* kTopTensor = "";

  /// Throws kBadCheckpoint naming the file; methods below also name the key.
  explicit TorchFile(const std::string& path);

  /// A contiguous copy in the stored dtype. Throws kBadCheckpoint if the key is missing, is not a tensor or exceeds its
  /// storage.
  at::Tensor tensor(const std::string& key) const override;
  /// Scalars and strings of the dictionary at `key`; values of other types are skipped. Empty if `key` has no
  /// dictionary.
  TorchMetadata metadata_at(const std::string& key) const;

 private:
  void read_parts();
  std::string_view part(const std::string& name) const;
  [[noreturn]] void bad(const std::string& what) const;

  std::map<std::string, std::string_view> parts_;  // file name without the common folder -> content
  PickleValue::Dictionary values_;
};

/// Writes a torch file with the tensors in this order, then the dictionary `metadata` at `metadata_key`. Tensors keep
/// their dtypes and become contiguous. Python's `torch.load(weights_only=True)` reads the file. The file uses only
/// basic opcodes and aligns entries to 64 bytes, so that simpler loaders can read and map it. An existing file is
/// replaced once the new one is complete.
/// Throws kBadArgument for a file beyond 4 GiB, or an integer beyond 32 bits, which old loaders reject. Throws kStorage
/// if writing fails.
void write_torch_file(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                      const std::string& metadata_key, const TorchMetadata& metadata);

}  // namespace carillon
