#include "core/checkpoint/tensor_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;
using test::bytes_of;
using test::gguf_bytes;

namespace {

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string written(const std::string& bytes) {
  const std::string path = test::fixture_directory() + "/model.gguf";
  test::write_file(path, bytes);
  return path;
}

/// Random blocks, and sums of their values as read by the gguf package (0.19).
const struct {
  uint32_t type;
  int64_t numbers;
  double sum, weighted_sum, absolute_sum;
  const char* hex;
} kBlocks[] = {
    {8, 32, -0.52001953125, 114.040283203125, 24.8309326171875,
     "a822b8abeeab14cef599cc052535d5cec0ad06783f60ec83760457a17c472a49ed10"},
    {2, 32, -0.9100341796875, -17.17364501953125, 1.716064453125,
     "a822ce0d8f02264785762462c423399232b3"},
    {12, 256, 86.2173957824707, 9665.622569084167, 87.70629787445068,
     "f7165f13b527970bb48a4200a5627b0c90b818268101caff5536e4307fa901a76df710c04edc083cbdb5404808b9586f"
     "bf8a6343304464f943287f2d2133cee5d95535cc78861fd80e7fa01dd0a174645397c6a0adc1367e7e3976aa6b833bad"
     "348bb5a93fc4900f8a8987f50f8c3b8efc8c4ce733da7d4597758c5cbdd130e147d9d82f7c5b70102d58b85f48d7dead"},
    {13, 256, 270.14051628112793, 31164.123381614685, 270.51303005218506,
     "f7165f13be1ebedebe4b4f57ff8b313a8509618b87183ce5346b49e2c23348df4abd744e5c8bbd04b85d34c7f36d1eb5"
     "cdc25ec5599f4e006d2fb109fa75dc800fadcc557469c96f94eb69eebb60083412b52987ef702f53e2eb824bc02064ce"
     "e95b3927060103514ace681e82642726b083f0478aaed1b2bc0e5d9443c9d372a980672b694c87ccd6d3becc79ce4a3c"
     "08d2480f3868dd51f295602595e7c4cc0d400185b137cf812336624a8c72a281"},
    {14, 256, 2.9924869537353516, 1276.5991344451904, 498.43492698669434,
     "d467abf7e837773cbee99fc450a6b8030b815550f3c2e7ee6c1a0bdfd5adf8158373d1d7731f4dd81c1e0a749e6e2d5e"
     "a649fafaf93d76f3973b5eade3bb40669983d035beaabaeffc58cf44af7c608e0f94b5ac4582793dec4eae5081cfcdbd"
     "8d848932eacda4aca344d0f1a21228af4cb86ca57931bd761cefc7f748b0cd380b91185b32a714a4869a9ea79b376a1b"
     "18d58a299f7a35b1d71638d795b5a8a29ff5f9eef71f636085ae6854a7066ccc12d1840a52a7ab3153bd6131891df563"
     "103e2a28296545ccddb8b7d879d566614d18"},
};

}  // namespace

TEST("gguf: plain tensors are views of the file with dimensions reversed") {
  const at::Tensor floats = at::randn({2, 3}), halves = at::randn({4}).to(at::kHalf),
                   bfloats = at::randn({2, 1, 5}).to(at::kBFloat16);
  const auto file = Gguf(written(gguf_bytes(
      {{"w", {3, 2}, 0, bytes_of(floats)}, {"h", {4}, 1, bytes_of(halves)}, {"b", {5, 1, 2}, 30, bytes_of(bfloats)}})));
  EXPECT_EQ(file.names().size(), 3u);
  EXPECT(at::equal(file.tensor("w"), floats));
  EXPECT(at::equal(file.tensor("h"), halves));
  EXPECT(at::equal(file.tensor("b"), bfloats));
  EXPECT(!file.codes("w"));
}

TEST("gguf: decodes every quantization type like the reference reader") {
  for (const auto& block : kBlocks) {
    const auto numbers = static_cast<uint64_t>(block.numbers);
    const auto file = Gguf(written(gguf_bytes({{"w", {numbers, 1}, block.type, from_hex(block.hex)}})));
    const at::Tensor read = file.tensor("w").to(at::kDouble);
    EXPECT((read.sizes() == at::IntArrayRef{1, block.numbers}));
    // The product of two scales is rounded to float16, which has a precision of 11 bits.
    const double tolerance = 1e-3 * block.absolute_sum;
    EXPECT_NEAR(read.sum().item<double>(), block.sum, tolerance);
    EXPECT_NEAR(read.abs().sum().item<double>(), block.absolute_sum, tolerance);
    EXPECT_NEAR((read * at::arange(block.numbers)).sum().item<double>(), block.weighted_sum,
                tolerance * static_cast<double>(block.numbers));
    const auto codes = file.codes("w");
    EXPECT(codes && codes->is_quantized());
    EXPECT((codes->dense(at::kDouble) - read).norm().item<double>() / read.norm().item<double>() < 0.006);
  }
}

TEST("gguf: opens a folder with one .gguf file as a checkpoint and restores leading dimensions of 1") {
  const std::string directory = test::fixture_directory();
  const at::Tensor table = at::randn({1, 6, 4}), weight = at::randn({2, 32}).to(at::kBFloat16);
  test::write_file(directory + "/model-BF16.gguf", gguf_bytes({{"scale_shift_table", {4, 6}, 0, bytes_of(table)},
                                                         {"model.p.weight", {32, 2}, 30, bytes_of(weight)},
                                                         {"silence_latent", {4, 6}, 0, bytes_of(table)}}));
  const auto checkpoint = Checkpoint::open(directory);
  const auto weights = checkpoint.weights(Placement{});
  EXPECT(at::equal(weights.get("scale_shift_table", {1, 6, 4}), table));
  EXPECT(at::equal(weights.matrix("p.weight", 2, 32).data, weight.to(at::kFloat)));
  EXPECT_THROWS(weights.get("scale_shift_table", {1, 4, 6}), "has shape [6, 4], expected [1, 4, 6]");
  EXPECT(at::equal(read_silence_latent(checkpoint, 4), table));

  test::write_file(directory + "/other.gguf", "GGUF");
  EXPECT_THROWS(Checkpoint::open(directory), "more than one GGUF file, keep only one: model-BF16.gguf, other.gguf");
}

TEST("gguf: keeps weights quantized if allowed, else dequantizes them") {
  const std::string directory = test::fixture_directory();
  std::string rows;
  for (int i = 0; i < 4; ++i) rows += from_hex(kBlocks[0].hex);
  test::write_file(directory + "/model-Q8_0.gguf", gguf_bytes({{"w", {64, 2}, kBlocks[0].type, rows}}));
  const auto checkpoint = Checkpoint::open(directory);
  Placement placement;
  placement.weights = WeightForm::kStored;
  EXPECT(checkpoint.weights(placement).matrix("w", 2, 64).quantization() == kernels::Quantization::kInt8);
  EXPECT_THROWS(checkpoint.weights(placement).matrix("w", 2, 32), "'w' has shape [2, 64], expected [2, 32]");
  placement.weights = WeightForm::kInt4;
  EXPECT(checkpoint.weights(placement).matrix("w", 2, 64).quantization() == kernels::Quantization::kInt4);
  EXPECT(!checkpoint.weights(Placement{}).matrix("w", 2, 64).is_quantized());
}

TEST("gguf: rejects damaged, truncated and unsupported files by name") {
  const std::string whole = gguf_bytes({{"w", {32, 2}, 8, std::string(68, 'x')}});
  const std::string version_1 = "GGUF" + test::little_endian<uint32_t>(1) + whole.substr(8);
  EXPECT_THROWS((void)Gguf(written("GGML" + whole.substr(4))), "model.gguf: not a GGUF file");
  EXPECT_THROWS((void)Gguf(written(version_1)), "GGUF version 1, expected 2 or 3");
  EXPECT_THROWS((void)Gguf(written(gguf_bytes({{"w", {32}, 10, "x"}}))),
                "'w' has the GGUF type 10, which is not supported");
  EXPECT_THROWS((void)Gguf(written(gguf_bytes({{"w", {33}, 8, std::string(68, 'x')}}))), "impossible shape [33]");
  EXPECT_THROWS((void)Gguf(written(gguf_bytes({{"w", {32, uint64_t{1} << 60}, 8, "x"}}))), "tensor 'w'");
  EXPECT_THROWS((void)Gguf(written(gguf_bytes({{"w", {1}, 0, "xxxx"}, {"w", {1}, 0, "xxxx"}}))),
                "tensor 'w' appears twice");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROWS((void)Gguf(written(whole.substr(0, size))), "model.gguf");
  }
  (void)Gguf(written(whole));
}
