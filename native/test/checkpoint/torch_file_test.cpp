#include "core/checkpoint/torch_file.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <limits>

#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;
using test::pickled_text;
using namespace std::string_literals;

namespace {

std::string integers(const std::vector<int32_t>& values) {
  std::string items = "(";
  for (const int32_t value : values) items += "J" + test::little_endian(value);
  return items + "t";
}

struct View {
  std::string type = "FloatStorage";
  int32_t elements = 6, offset = 0;
  std::vector<int32_t> sizes = {3, 2}, strides = {2, 1};
};

std::string pickled(const View& view) {
  const std::string storage = "(" + pickled_text("storage") + "ctorch\n" + view.type + "\n" + pickled_text("0") +
                              pickled_text("cuda:0") + "J" + test::little_endian(view.elements) + "tQ";
  return "\x80\x02}" + pickled_text("x") + "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "J" +
         test::little_endian(view.offset) + integers(view.sizes) + integers(view.strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtRs.";
}

std::string write(const std::vector<std::pair<std::string, std::string>>& entries) {
  const std::string path = test::fixture_directory() + "/file.pt";
  test::write_file(path, test::zip_bytes(entries));
  return path;
}

/// Writes a file whose tensor 'x' is this view of `storage`, and reads the tensor from the file.
at::Tensor read(const View& view, const at::Tensor& storage) {
  return TorchFile(write({{"any/data.pkl", pickled(view)}, {"any/data/0", test::bytes_of(storage)}})).tensor("x");
}

}  // namespace

TEST("torch file: honours strides and offset of a view") {
  const at::Tensor numbers = at::arange(6, at::kFloat);
  EXPECT(read({}, numbers).equal(numbers.view({3, 2})));
  const at::Tensor transposed = read({.sizes = {3, 2}, .strides = {1, 3}}, numbers);
  EXPECT(transposed.equal(numbers.view({2, 3}).t()) && transposed.is_contiguous());
  EXPECT(read({.offset = 1, .sizes = {2}, .strides = {3}}, numbers).equal(at::tensor({1.0f, 4.0f})));
  EXPECT_EQ(read({.offset = 5, .sizes = {}, .strides = {}}, numbers).item<float>(), 5.0f);
}

TEST("torch file: reads every storage type in its dtype") {
  const std::vector<std::pair<std::string, at::ScalarType>> types = {
      {"FloatStorage", at::kFloat}, {"DoubleStorage", at::kDouble},     {"HalfStorage", at::kHalf},
      {"LongStorage", at::kLong},   {"BFloat16Storage", at::kBFloat16}, {"IntStorage", at::kInt},
      {"ShortStorage", at::kShort}, {"CharStorage", at::kChar},         {"ByteStorage", at::kByte}};
  for (const auto& [type, dtype] : types) {
    const at::Tensor numbers = at::arange(6, dtype);
    EXPECT(read({.type = type}, numbers).equal(numbers.view({3, 2})));
    EXPECT(read({.type = type}, numbers).scalar_type() == dtype);
  }
  const at::Tensor flags = read({.type = "BoolStorage", .sizes = {6}, .strides = {1}}, at::arange(6, at::kByte));
  EXPECT(flags.equal(at::tensor({0, 1, 1, 1, 1, 1}).to(at::kBool)));
  EXPECT_THROWS(read({.type = "QInt8Storage"}, at::zeros({6})), "storage type 'torch QInt8Storage' is not supported");
}

TEST("torch file: rejects a view beyond its storage, also if offset or sizes overflow") {
  const int32_t most = std::numeric_limits<int32_t>::max();
  const std::vector<View> views = {{.offset = 1},
                                   {.offset = -1},
                                   {.sizes = {4, 2}},
                                   {.strides = {3, 1}},
                                   {.sizes = {3, 0}},
                                   {.sizes = {-3, -2}},
                                   {.strides = {-2, 1}},
                                   {.sizes = {most, 2}, .strides = {0, 1}},
                                   {.sizes = {most, most, most}, .strides = {most, most, most}},
                                   {.sizes = {most, most, most}, .strides = {0, 0, 0}}};
  for (const View& view : views) EXPECT_THROWS(read(view, at::zeros({6})), "key 'x' is empty or exceeds its storage");
  EXPECT_THROWS(read({.sizes = {6}}, at::zeros({6})), "sizes and strides of different length");
  EXPECT_THROWS(read({}, at::zeros({5})), "says its storage has 6 elements, but the file has 20 bytes");
}

TEST("torch file: rejects incomplete files and other formats with the reason") {
  const std::string pickle = pickled({}), storage(24, '\0');
  const auto open = [](const std::vector<std::pair<std::string, std::string>>& entries) {
    return TorchFile(write(entries)).tensor("x");
  };
  EXPECT_THROWS(open({{"data.pkl", pickle}}), "entry 'data.pkl' is not in a folder");
  EXPECT_THROWS(open({{"a/data/0", storage}}), "it has no entry 'data.pkl'");
  EXPECT_THROWS(open({{"a/data.pkl", pickle}}), "it has no entry 'data/0'");
  EXPECT_THROWS(open({{"a/data.pkl", "\x80\x02N."}}), "the top value is not a dictionary");
  EXPECT_THROWS(open({{"a/data.pkl", pickle}, {"a/data/0", storage}, {"a/byteorder", "big"}}), "not little-endian");
  EXPECT_THROWS(open({{"a/data.pkl", "\x80\x02}."}}), "key 'x' is missing");
  EXPECT_THROWS(open({{"a/data.pkl", "\x80\x02}" + pickled_text("x") + "K\x01s."}}), "key 'x' is not a tensor");
}

TEST("torch file: written files read back") {
  const std::string path = test::fixture_directory() + "/file.pt";
  const at::Tensor rows = at::randn({3, 4}).t();
  const TorchMetadata notes = {{"none", nullptr}, {"yes", true}, {"count", int64_t{-7}}, {"words", "glühend\n"s}};
  write_torch_file(path, {{"rows", rows}, {"half", rows.to(at::kHalf)}, {"flags", rows > 0}}, "notes", notes);
  const auto file = TorchFile(path);
  EXPECT(file.tensor("rows").equal(rows));
  EXPECT(file.tensor("half").equal(rows.to(at::kHalf)));
  EXPECT(file.tensor("flags").equal(rows > 0));
  EXPECT(file.metadata_at("notes") == notes);
  EXPECT(file.metadata_at("rows").empty() && file.metadata_at("absent").empty());
}

TEST("torch file: aligns every entry to 64 bytes") {
  const std::string path = test::fixture_directory() + "/file.pt";
  write_torch_file(path, {{"a", at::ones({5})}, {"b", at::ones({17})}, {"c", at::ones({3})}}, "notes", {});
  const auto entries = list_stored_zip(*MappedFile::open(path), path);
  EXPECT_EQ(entries.size(), size_t{7});  // three tensors, pickle, byteorder, version and id
  for (const auto& entry : entries) EXPECT_EQ(entry.begin % 64, size_t{0});
}

TEST("torch file: a failed write keeps the old file") {
  const std::string directory = test::fixture_directory(), path = directory + "/file.pt";
  write_torch_file(path, {{"x", at::ones({2})}}, "notes", {});
  EXPECT_THROWS(write_torch_file(path, {{"x", at::zeros({2})}}, "notes", {{"big", int64_t{1} << 31}}),
                "2147483648 does not fit the 32 bits");
  EXPECT_THROWS(write_torch_file(path, {{"x", at::zeros({2}, at::kChar)}}, "notes", {}), "cannot be written");
  EXPECT(TorchFile(path).tensor("x").equal(at::ones({2})));
  EXPECT_THROWS(write_torch_file(directory + "/absent/file.pt", {}, "notes", {}), "absent/file.pt cannot be written");
  for (const auto& entry : std::filesystem::directory_iterator(directory)) EXPECT_EQ(entry.path().string(), path);
}
