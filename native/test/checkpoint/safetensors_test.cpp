#include "core/checkpoint/tensor_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "core/checkpoint/json.h"
#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;
using test::safetensors_bytes;

namespace {

Safetensors open_bytes(const std::string& bytes) {
  const std::string path = test::fixture_directory() + "/model.safetensors";
  test::write_file(path, bytes);
  return Safetensors(path);
}

std::string one_tensor(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }

}  // namespace

TEST("safetensors: reads every type, metadata and empty tensors as written") {
  const std::string path = test::fixture_directory() + "/model.safetensors";
  const test::Tensors written = {{"half", at::randn({2, 3}).to(at::kHalf)},
                                 {"bfloat", at::randn({5}).to(at::kBFloat16)},
                                 {"float", at::randn({2, 1, 4})},
                                 {"long", at::arange(7)},
                                 {"int", at::arange(3, at::kInt)},
                                 {"scalar", at::scalar_tensor(2.5, at::kFloat)},
                                 {"empty", at::empty({0, 4})}};
  test::write_safetensors(path, written, R"({"format":"pt"})");
  const auto file = Safetensors(path);
  EXPECT_EQ(file.names().size(), written.size());
  EXPECT_EQ(file.metadata().at("format"), std::string("pt"));
  for (const auto& [name, tensor] : written) EXPECT(at::equal(file.tensor(name), tensor));
}

TEST("safetensors: a tensor outlives the reader and the file on disk") {
  const std::string path = test::fixture_directory() + "/model.safetensors";
  test::write_safetensors(path, {{"w", at::full({1000}, 3.0)}});
  at::Tensor tensor;
  {
    const auto file = Safetensors(path);
    tensor = file.tensor("w");
    EXPECT_EQ(file.tensor("w").data_ptr(), tensor.data_ptr());
  }
  std::filesystem::remove(path);
  EXPECT_EQ(tensor.sum().item<double>(), 3000.0);
}

TEST("safetensors: reads unaligned data") {
  const at::Tensor values = at::randn({3});
  const std::string header = one_tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])");
  for (int padding = 0; padding < 4; ++padding) {
    const auto file =
        open_bytes(safetensors_bytes(header + std::string(static_cast<size_t>(padding), ' '), test::bytes_of(values)));
    EXPECT(at::equal(file.tensor("w"), values));
  }
}

TEST("safetensors: rejects damaged files with file and tensor") {
  const std::string data(16, '\0');
  const auto refused = [&](const std::string& header, const char* message) {
    EXPECT_THROWS(open_bytes(safetensors_bytes(header, data)), message);
    EXPECT_THROWS(open_bytes(safetensors_bytes(header, data)), "model.safetensors");
  };
  refused(one_tensor(R"("dtype":"F32","shape":[8],"data_offsets":[0,32])"),
          "tensor 'w' ends at byte 32 of 16: the file is truncated");
  refused(one_tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"), "tensor 'w' has a shape that does not fit");
  refused(one_tensor(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"), "does not fit");
  refused(one_tensor(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])"), "does not fit");
  refused(one_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])"), "invalid data_offsets");
  refused(one_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"), "invalid data_offsets");
  refused(one_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), "invalid data_offsets");
  refused(one_tensor(R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4])"), "type F8_E4M3, which is not supported");
  refused(one_tensor(R"("shape":[4],"data_offsets":[0,16])"), "w.dtype is missing");
  refused(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      "tensors 'a' and 'b' overlap");
  refused(R"({"__metadata__":{"x":1}})", "x is an integer, expected a string");
  refused("[]", "expected an object");
  refused("not json", "not JSON");
}

TEST("safetensors: rejects files of other formats") {
  EXPECT_THROWS(open_bytes(""), "the file is empty");
  EXPECT_THROWS(open_bytes("abc"), "too short");
  EXPECT_THROWS(open_bytes("<!DOCTYPE html><html></html>"), "not a safetensors file, or truncated");
  EXPECT_THROWS((void)Safetensors(test::fixture_directory()), "not a regular file");
  EXPECT_THROWS((void)Safetensors(test::fixture_directory() + "/absent.safetensors"), "No such file");
}

TEST("safetensors: rejects every truncation of a valid file") {
  const std::string path = test::fixture_directory() + "/whole.safetensors";
  test::write_safetensors(path, {{"a", at::randn({4})}, {"b", at::randn({2, 2})}});
  std::ifstream stream(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  for (size_t size = 0; size < whole.size(); ++size) {
    bool refused = false;
    try {
      open_bytes(whole.substr(0, size));
    } catch (const Error& error) {
      refused = error.code() == ErrorCode::kBadCheckpoint;
    }
    EXPECT(refused);
  }
}

TEST("safetensors: names a missing tensor") {
  const std::string path = test::fixture_directory() + "/model.safetensors";
  test::write_safetensors(path, {{"a", at::zeros({1})}});
  EXPECT_THROWS(Safetensors(path).tensor("b"), "model.safetensors: there is no tensor 'b'");
}

TEST("safetensors: saved tensors read back, for every type, layout and name") {
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
  const auto file = Safetensors(path);
  EXPECT(file.metadata() == metadata);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT(file.tensor(name).scalar_type() == tensor.scalar_type());
    EXPECT(file.shape(name) == tensor.sizes().vec());
    EXPECT(at::equal(file.tensor(name), tensor));
  }
}

TEST("safetensors: a saved header is a multiple of 8 bytes and offsets have no gaps") {
  const std::string path = test::fixture_directory() + "/a.safetensors";
  save_safetensors(path, {{"a", at::ones({3}, at::kByte)}, {"b", at::ones({2})}, {"c", at::ones({1}, at::kDouble)}});
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
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
