#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace carillon {

/// A storage of a torch archive: the entry `data/<key>`, with `elements` numbers of type `dtype`. Tensors are views of
/// storages.
struct PickleStorage {
  std::string key;
  at::ScalarType dtype;
  int64_t elements;
};

/// A view of a storage. The offset and the strides are in elements.
struct PickleTensor {
  PickleStorage storage;
  int64_t offset;
  std::vector<int64_t> sizes, strides;
};

/// A value of a pickle that torch.save wrote. Copies share nested values; there are no cycles.
struct PickleValue {
  using Text = std::shared_ptr<const std::string>;
  using Tuple = std::shared_ptr<const std::vector<PickleValue>>;
  using Dictionary = std::shared_ptr<std::map<std::string, PickleValue>>;
  /// Stands for a valid value that no caller needs: a list, or a dictionary that is referenced a second time.
  struct Opaque {};
  /// The name of a Python class or function, such as "torch FloatStorage". It is never called.
  struct Global {
    std::string name;
  };

  std::variant<std::nullptr_t, bool, int64_t, double, Text, Tuple, Dictionary, Opaque, Global, PickleStorage,
               std::shared_ptr<const PickleTensor>>
      value = nullptr;
  int depth = 0;  // nesting depth, which `unpickle` limits

  /// The value as T, or nullptr if it has another type.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

/// Reads a pickle of protocol 2 to 5 without executing anything: accepts only opcodes and globals of plain data.
/// `source` names the stream in errors. Throws kBadCheckpoint.
PickleValue unpickle(std::string_view bytes, const std::string& source);

}  // namespace carillon
