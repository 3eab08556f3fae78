// Feeds damaged copies of valid files to all readers of untrusted files. A reader must succeed or throw kBadCheckpoint
// with the name of the source. With sanitizers (CARILLON_SANITIZE) this test also finds out-of-bounds reads.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "core/adapters/adapter.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/pickle.h"
#include "core/checkpoint/tensor_file.h"
#include "core/checkpoint/torch_file.h"
#include "core/runtime/error.h"
#include "core/training/training_sample.h"
#include "test/checkpoint_files.h"
#include "test/test.h"
#include "test/tiny_adapter.h"

using namespace carillon;
using namespace std::string_literals;

namespace {

constexpr int kRounds = 4000;

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Applies one to four random changes that tend to break parsers.
std::string damaged(std::string bytes, std::mt19937& random) {
  static const std::vector<std::string> kNumbers = {
      "\xff\xff\xff\xff\xff\xff\xff\xff"s, "\xff\xff\xff\xff\xff\xff\xff\x7f"s, "\0\0\0\0\0\0\0\x80"s,
      "\0\0\0\0\0\0\0\0"s,                 "\xff\xff\xff\x7f"s,                 "18446744073709551615",
      "-1",                                "9223372036854775807",               "1e999",
      "[[[[[[[[",                          "\"\\ud800\"",                       "\xc3\x28"};
  for (int changes = 1 + static_cast<int>(random() % 4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random() % bytes.size();
    const size_t length = 1 + random() % std::min<size_t>(16, bytes.size() - at);
    switch (random() % 6) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.replace(at, std::min(length, size_t{8}), kNumbers[random() % kNumbers.size()]);
        break;
      default:
        bytes.resize(random() % 8 == 0 ? at : bytes.size());
    }
  }
  return bytes;
}

/// Calls `read` with the valid file `whole`, then with many damaged copies and about 200 prefixes of `whole`.
void expect_no_crash(const std::string& whole, const std::string& source,
                 const std::function<void(const std::string& bytes)>& read) {
  read(whole);
  std::mt19937 random(11);
  const size_t stride = whole.size() / 200 + 1;
  for (size_t round = 0; round < kRounds + whole.size() / stride; ++round) {
    const std::string bytes = round < kRounds ? damaged(whole, random) : whole.substr(0, (round - kRounds) * stride);
    try {
      read(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(name_of_choice(error.code())) + ": " + error.what(), "BAD_CHECKPOINT: "s + error.what());
      EXPECT(std::string(error.what()).find(source) != std::string::npos);
    }
  }
}

/// Variant of expect_no_crash for functions that read a file. Writes each damaged copy to `path`, then calls `read`.
void expect_no_crash_file(const std::string& path, const std::function<void()>& read) {
  expect_no_crash(read_file(path), path, [&](const std::string& bytes) {
    test::write_file(path, bytes);
    read();
  });
}

TrainingSample some_sample() {
  const auto random = [](at::IntArrayRef shape) {
    return at::randn(shape, at::detail::createCPUGenerator(7), at::kFloat);
  };
  return {.target_latents = random({5, 6}),
          .attention_mask = at::ones({5}, at::kBool),
          .encoder_hidden_states = random({4, 8}),
          .encoder_attention_mask = at::ones({4}, at::kBool),
          .context_latents = random({5, 12}),
          .metadata = {{"bpm", nullptr}, {"caption", "a song"s}, {"duration", int64_t{12}}, {"instrumental", true}}};
}

}  // namespace

TEST("damaged files: safetensors reads never leave the file") {
  const std::string path = test::fixture_directory() + "/model.safetensors";
  test::write_safetensors(path, {{"a", at::randn({4})}, {"b", at::randn({2, 2})}, {"none", at::empty({0, 3})}});
  expect_no_crash_file(path, [&] {
    const auto file = Safetensors(path);
    for (const auto& name : file.names()) file.tensor(name).to(at::kDouble).sum();
  });
}

TEST("damaged files: GGUF reads never leave the file") {
  const std::string path = test::fixture_directory() + "/model.gguf";
  test::write_file(path,
                   test::gguf_bytes({{"a", {4}, 0, std::string(16, 'x')}, {"b", {32, 2}, 8, std::string(68, 'x')}}));
  expect_no_crash_file(path, [&] {
    const auto file = Gguf(path);
    for (const auto& name : file.names()) file.tensor(name).to(at::kDouble).sum();
  });
}

TEST("damaged files: training samples written by Carillon or Python are read or rejected") {
  const std::string path = test::fixture_directory() + "/sample.pt";
  write_sample(path, some_sample());
  expect_no_crash_file(path, [&] { read_sample(path); });
  test::write_file(path, read_file("native/test/fixtures/python_sample.pt"));
  expect_no_crash_file(path, [&] { read_sample(path); });
}

TEST("damaged files: pickle streams are read or rejected") {
  const std::string pickle =
      "\x80\x02}q\0(X\1\0\0\0xq\1ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"s
      "0X\3\0\0\0cpuK\x06tQK\0K\x03K\2\x86K\2K\1\x86\x89"s + "ccollections\nOrderedDict\n)RtRX\1\0\0\0bJ\1\0\0\0u."s;
  expect_no_crash(pickle, "data.pkl", [](const std::string& bytes) { unpickle(bytes, "data.pkl"); });
}

TEST("damaged files: JSON is read or rejected") {
  const std::string text = R"({"a": [1, -2.5e3, true, null, "text \u00e9\n"], "b": {"c": {"d": 9007199254740993}}})";
  expect_no_crash(text, "config.json", [](const std::string& bytes) { Json::parse(bytes, "config.json"); });
}

TEST("damaged files: adapters are read or rejected") {
  const AceStep model = test::tiny_ace_step({});
  const auto targets = adapter_targets(model.dit);
  const std::string path = test::write_single(test::lora_tensors(test::attention_of(model.dit), test::peft_key));
  expect_no_crash_file(path, [&] { read_adapter(path, targets); });
}

TEST("damaged files: LoHa, IA3 and adapters in pickles are read or rejected") {
  const AceStep model = test::tiny_ace_step({});
  const auto targets = adapter_targets(model.dit);
  const std::string q = "lycoris_layers_0_self_attn_q_proj.", k = "lycoris_layers_0_self_attn_k_proj.";
  const std::string path = test::write_single({{q + "hada_w1_a", at::randn({32, 2})},
                                               {q + "hada_w1_b", at::randn({2, 32})},
                                               {q + "hada_w2_a", at::randn({32, 2})},
                                               {q + "hada_w2_b", at::randn({2, 32})},
                                               {q + "alpha", at::scalar_tensor(1.0)},
                                               {k + "weight", at::randn({1, 32})},
                                               {k + "on_input", at::scalar_tensor(1, at::kLong)}});
  expect_no_crash_file(path, [&] { read_adapter(path, targets); });
  const std::string pickle = test::fixture_directory() + "/adapter_model.bin";
  test::write_file(pickle, read_file("native/test/fixtures/python_adapter.bin"));
  expect_no_crash_file(pickle, [&] { read_adapter(pickle, targets); });
}
