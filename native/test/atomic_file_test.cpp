#include "core/checkpoint/atomic_file.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "core/checkpoint/json.h"
#include "core/checkpoint/json_text.h"
#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/file_size_limit.h"
#include "test/test.h"

using namespace carillon;
namespace fs = std::filesystem;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

size_t files_in(const std::string& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), {}));
}

/// Runs `write`, which must fail with kStorage, and returns its message.
template <typename Write>
std::string storage_error(const Write& write) {
  try {
    write();
  } catch (const Error& error) {
    EXPECT(error.code() == ErrorCode::kStorage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST("atomic file: nothing is at the path before the commit, everything after") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.txt";
  {
    AtomicFile file(path);
    file.write("first ");
    file.write("second");
    EXPECT(!fs::exists(path));
    file.commit();
  }
  EXPECT_EQ(text_of(path), std::string("first second"));
  write_file_atomically(path, "other");
  EXPECT_EQ(text_of(path), std::string("other"));
  EXPECT_EQ(files_in(directory), size_t{1});
}

TEST("atomic file: without a commit the old file stays and nothing else is left") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.txt";
  write_file_atomically(path, "old");
  {
    AtomicFile(path).write("new");
  }
  EXPECT_EQ(text_of(path), std::string("old"));
  EXPECT_EQ(files_in(directory), size_t{1});
}

TEST("atomic file: a refusal is a storage error with path and reason, and leaves the old file") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.safetensors";
  EXPECT_EQ(storage_error([&] { write_file_atomically(directory + "/none/a.txt", "x"); }),
            directory + "/none/a.txt cannot be written: No such file or directory");

  save_safetensors(path, {{"w", at::ones({2})}});
  const std::string old = text_of(path);
  {
    const test::FileSizeLimit limit(4096);
    EXPECT_EQ(storage_error([&] { save_safetensors(path, {{"w", at::ones({100000})}}); }),
              path + " cannot be written: File too large");
  }
  EXPECT_EQ(text_of(path), old);
  EXPECT_EQ(files_in(directory), size_t{1});
}

TEST("safetensors: what is saved reads back, whatever its type, layout and name") {
  const std::string path = test::fixture_directory() + "/a.safetensors";
  const at::Tensor matrix = at::randn({3, 5});
  const std::map<std::string, at::Tensor> tensors = {{"byte", at::ones({3}, at::kByte)},
                                                     {"bool", at::ones({1}, at::kBool)},
                                                     {"bfloat", at::randn({7}).to(at::kBFloat16)},
                                                     {"transposed", matrix.t()},
                                                     {"row", matrix[1]},
                                                     {"double", at::randn({2}, at::kDouble)},
                                                     {"scalar", at::scalar_tensor(2.5, at::kFloat)},
                                                     {"empty", at::empty({0, 4})},
                                                     {"quote \" and é", at::arange(3)}};
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"text", "{\"a\": 1}\n\t\\"}};
  save_safetensors(path, tensors, metadata);
  const auto file = Safetensors::open(path);
  EXPECT(file.metadata() == metadata);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT(file.tensor(name).scalar_type() == tensor.scalar_type());
    EXPECT(file.shape(name) == tensor.sizes().vec());
    EXPECT(at::equal(file.tensor(name), tensor));
  }
}

TEST("safetensors: the header of a saved file is whole 8 bytes, its offsets have no gaps") {
  const std::string path = test::fixture_directory() + "/a.safetensors";
  save_safetensors(path, {{"a", at::ones({3}, at::kByte)}, {"b", at::ones({2})}, {"c", at::ones({1}, at::kDouble)}});
  const std::string bytes = text_of(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, uint64_t{0});
  EXPECT_EQ(bytes.size(), sizeof length + length + 8 + 8 + 3);
  const Json header = Json::parse({bytes.data() + sizeof length, length}, "header");
  const auto offsets = [&](const char* name) { return header.at(name).get_ints("data_offsets"); };
  EXPECT(offsets("c") == (std::vector<int64_t>{0, 8}));
  EXPECT(offsets("b") == (std::vector<int64_t>{8, 16}));
  EXPECT(offsets("a") == (std::vector<int64_t>{16, 19}));
}

TEST("json text: what is written reads back") {
  const std::string text =
      json_object({{"b", json_array({json_number(1e-4), json_number(-3), json_bool(false), "null"})},
                   {"a\n", json_string("\"\x01é")}},
                  true);
  const Json read = Json::parse(text, "text");
  EXPECT_EQ(read.at("a\n").as_string(), std::string("\"\x01é"));
  EXPECT_EQ(read.at("b").as_array()[0].as_double(), 1e-4);
  EXPECT_EQ(read.at("b").as_array()[1].as_int(), int64_t{-3});
  EXPECT_EQ(json_number(1.0 / 0.0), std::string("null"));
  EXPECT_EQ(json_object({}), std::string("{}"));
  EXPECT_EQ(json_object({{"b", "1"}, {"a", "2"}}, true), std::string("{\n  \"a\": 2,\n  \"b\": 1\n}"));
}
