#include "core/training/training_sample.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "core/checkpoint/tensor_file.h"
#include "core/checkpoint/torch_file.h"
#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;
using namespace std::string_literals;

namespace {

constexpr int64_t kFrames = 5, kChannels = 6, kTokens = 4, kWidth = 8;
constexpr const char* kPythonSample = "native/test/fixtures/python_sample.pt";  // relative to the repository root

TrainingSample some_sample() {
  const auto random = [](at::IntArrayRef shape) {
    return at::randn(shape, at::detail::createCPUGenerator(7), at::kFloat);
  };
  return {.target_latents = random({kFrames, kChannels}),
          .attention_mask = at::ones({kFrames}, at::kBool),
          .encoder_hidden_states = random({kTokens, kWidth}),
          .encoder_attention_mask = at::ones({kTokens}, at::kBool),
          .context_latents = random({kFrames, 2 * kChannels}),
          .metadata = {{"bpm", nullptr}, {"caption", "a song"s}, {"duration", int64_t{12}}, {"instrumental", true}}};
}

DitConfig some_model() {
  DitConfig model{};
  model.audio_acoustic_hidden_dim = kChannels;
  model.encoder_hidden_size = kWidth;
  return model;
}

std::string fresh_path() { return test::fixture_directory() + "/sample.pt"; }

/// Calls `change` on the tensors of a sample, then writes the sample to a file. Returns the path.
template <typename Change>
std::string write_changed(const Change& change) {
  const TrainingSample sample = some_sample();
  std::map<std::string, at::Tensor> tensors = {{"target_latents", sample.target_latents},
                                               {"attention_mask", sample.attention_mask},
                                               {"encoder_hidden_states", sample.encoder_hidden_states},
                                               {"encoder_attention_mask", sample.encoder_attention_mask},
                                               {"context_latents", sample.context_latents}};
  change(tensors);
  const std::string path = fresh_path();
  write_torch_file(path, {tensors.begin(), tensors.end()}, "metadata", {});
  return path;
}

}  // namespace

TEST("sample: reads a file by Python with its strides and dtypes") {
  const TrainingSample sample = read_sample(kPythonSample);
  const at::Tensor latents = (at::arange(kChannels * kFrames, at::kFloat) / 8).view({kChannels, kFrames}).t();
  EXPECT(sample.target_latents.equal(latents) && sample.target_latents.is_contiguous());
  EXPECT(sample.attention_mask.equal(at::ones({kFrames}, at::kBool)));
  EXPECT(sample.encoder_hidden_states.equal((at::arange(32, 64, at::kFloat) / 4).view({kTokens, kWidth})));
  EXPECT(sample.encoder_attention_mask.equal(at::tensor({1, 1, 1, 0}).to(at::kBool)));
  EXPECT(sample.context_latents.equal(at::cat({at::zeros({kFrames, kChannels}), at::ones({kFrames, kChannels})}, 1)));
  const TorchMetadata expected = {
      {"audio_path", "/music/song.wav"s}, {"bpm", nullptr},          {"caption", "glühend"s},
      {"duration", int64_t{70000}},       {"is_instrumental", true}, {"long", int64_t{1} << 40},
      {"lyrics", "[Instrumental]"s},      {"offset", int64_t{-3}}};
  EXPECT(sample.metadata == expected);
  check_sample(sample, some_model(), kPythonSample);
}

TEST("sample: written samples read back in every dtype") {
  const TrainingSample sample = some_sample();
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const std::string path = fresh_path();
    TrainingSample typed = sample;
    typed.target_latents = sample.target_latents.to(dtype);
    typed.context_latents = sample.context_latents.to(dtype);
    typed.encoder_hidden_states = sample.encoder_hidden_states.to(dtype);
    write_sample(path, typed);
    const TrainingSample read = read_sample(path);
    EXPECT(read.target_latents.equal(typed.target_latents.to(at::kFloat)));
    EXPECT(read.context_latents.equal(typed.context_latents.to(at::kFloat)));
    EXPECT(read.encoder_hidden_states.equal(typed.encoder_hidden_states.to(at::kFloat)));
    EXPECT(read.attention_mask.equal(sample.attention_mask));
    EXPECT(read.encoder_attention_mask.equal(sample.encoder_attention_mask));
    EXPECT(read.metadata == sample.metadata);
    EXPECT(TorchFile(path).tensor("attention_mask").scalar_type() == dtype);
  }
}

TEST("sample: a safetensors file of the same tensors gives the same sample") {
  const TrainingSample sample = some_sample();
  const std::string path = test::fixture_directory() + "/sample.safetensors";
  std::map<std::string, at::Tensor> tensors = {{"target_latents", sample.target_latents.to(at::kBFloat16)},
                                               {"attention_mask", sample.attention_mask.to(at::kFloat)},
                                               {"encoder_hidden_states", sample.encoder_hidden_states},
                                               {"encoder_attention_mask", at::tensor({1, 1, 1, 0}).to(at::kBool)},
                                               {"context_latents", sample.context_latents}};
  const std::string notes = R"({"bpm": null, "caption": "a song", "duration": 12, "instrumental": true, "gain": 0.5})";
  save_safetensors(path, tensors, {{"metadata", notes}});
  const TrainingSample read = read_sample(path);
  EXPECT(read.target_latents.equal(sample.target_latents.to(at::kBFloat16).to(at::kFloat)));
  EXPECT(read.attention_mask.equal(sample.attention_mask));
  EXPECT(read.encoder_hidden_states.equal(sample.encoder_hidden_states));
  EXPECT(read.encoder_attention_mask.equal(at::tensor({1, 1, 1, 0}).to(at::kBool)));
  EXPECT(read.context_latents.equal(sample.context_latents));
  EXPECT(read.metadata == sample.metadata);
  check_sample(read, some_model(), path);

  save_safetensors(path, tensors);
  EXPECT(read_sample(path).metadata.empty());
  save_safetensors(path, tensors, {{"metadata", "a song"}});
  EXPECT_THROWS(read_sample(path), path + " (metadata): not JSON");
  tensors["encoder_hidden_states"] = at::empty({0, kWidth});
  save_safetensors(path, tensors);
  EXPECT_THROWS(read_sample(path), path + ": encoder_hidden_states is empty");
  tensors.erase("encoder_hidden_states");
  save_safetensors(path, tensors);
  EXPECT_THROWS(read_sample(path), path + ": there is no tensor 'encoder_hidden_states'");
}

TEST("sample: writes only opcodes that every loader supports") {
  const std::string path = fresh_path();
  write_sample(path, some_sample());
  const auto archive = MappedFile::open(path);
  const StoredEntry pickle = list_stored_zip(*archive, path).at(0);
  EXPECT_EQ(pickle.name, "archive/data.pkl");
  const std::string bytes(archive->data() + pickle.begin, pickle.size);
  const std::string allowed_globals[] = {"torch._utils\n_rebuild_tensor_v2\n", "collections\nOrderedDict\n",
                                         "torch\nFloatStorage\n", "torch\nBoolStorage\n"};
  EXPECT_EQ(bytes.substr(0, 2), "\x80\x02");
  size_t at = 2;
  while (at + 1 < bytes.size()) {
    const char opcode = bytes[at++];
    EXPECT("}(utQR)NJXc\x88\x89"s.find(opcode) != std::string::npos);
    if (opcode == 'J') at += 4;
    if (opcode == 'X') {
      uint32_t size;
      std::memcpy(&size, bytes.data() + at, 4);
      at += 4 + size;
    }
    if (opcode != 'c') continue;
    const size_t end = bytes.find('\n', bytes.find('\n', at) + 1) + 1;
    EXPECT(std::find(std::begin(allowed_globals), std::end(allowed_globals), bytes.substr(at, end - at)) !=
           std::end(allowed_globals));
    at = end;
  }
  EXPECT_EQ(bytes.substr(at), ".");
}

TEST("sample: removes the padding of a condition and rejects a condition of padding only") {
  TrainingSample sample = read_sample(kPythonSample);  // its last token is padding
  const at::Tensor states = sample.encoder_hidden_states;
  drop_condition_padding(sample, kPythonSample);
  EXPECT(sample.encoder_hidden_states.equal(states.narrow(0, 0, kTokens - 1)));
  EXPECT(sample.encoder_attention_mask.equal(at::ones({kTokens - 1}, at::kBool)));
  sample.encoder_attention_mask = at::zeros({kTokens - 1}, at::kBool);
  EXPECT_THROWS(drop_condition_padding(sample, kPythonSample),
                kPythonSample + ": encoder_attention_mask has no real token"s);
}

TEST("sample: names key and reason for an unusable file") {
  const auto refused = [](auto change, const char* fragment) {
    const std::string path = write_changed(change);
    EXPECT_THROWS(check_sample(read_sample(path), some_model(), path), path + ": ");
    EXPECT_THROWS(check_sample(read_sample(path), some_model(), path), fragment);
  };
  using Tensors = std::map<std::string, at::Tensor>;
  for (const char* key :
       {"target_latents", "attention_mask", "encoder_hidden_states", "encoder_attention_mask", "context_latents"}) {
    refused([&](Tensors& tensors) { tensors.erase(key); }, key);
    refused([&](Tensors& tensors) { tensors[key] = tensors[key].unsqueeze(0); }, key);
  }
  refused([](Tensors& tensors) { tensors["target_latents"][2][3] = std::nan(""); },
          "target_latents contains a value that is not finite");
  refused([](Tensors& tensors) { tensors["target_latents"] = at::ones({5, 6}, at::kLong); },
          "target_latents has type Long");
  refused([](Tensors& tensors) { tensors["target_latents"] = at::empty({0, 6}); }, "'target_latents' is empty");
  refused([](Tensors& tensors) { tensors["encoder_hidden_states"] = at::ones({4, 7}); },
          "encoder_hidden_states has width 7, but the model needs 8");
  refused([](Tensors& tensors) { tensors["attention_mask"] = at::ones({4}); }, "has shape [4], expected [5]");
  refused([](Tensors& tensors) { tensors["context_latents"] = at::ones({5, 11}); }, "[5, 11], expected [5, 12]");
  refused([](Tensors& tensors) { tensors["context_latents"] = at::ones({6, 12}); }, "[6, 12], expected [5, 12]");
  refused(
      [](Tensors& tensors) {
        tensors["target_latents"] = at::ones({5, 3});
        tensors["context_latents"] = at::ones({5, 6});
      },
      "target_latents has width 3, but the model needs 6");
  EXPECT_THROWS(read_sample("/absent/sample.pt"), "/absent/sample.pt: No such file");
}
