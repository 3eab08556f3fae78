#include "core/checkpoint/checkpoint.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;

namespace {

const Placement kFloat32{at::kCPU, at::kFloat};
const Placement kBfloat16{at::kCPU, at::kBFloat16};

/// Reads the silence latent of a checkpoint whose silence_latent.pt has the bytes `archive`.
at::Tensor read_silence(const std::string& archive, int64_t channels) {
  const std::string directory = test::fixture_directory();
  test::write_safetensors(directory + "/model.safetensors", {{"w", at::zeros({1})}});
  test::write_file(directory + "/silence_latent.pt", archive);
  return read_silence_latent(Checkpoint::open(directory), channels);
}

/// A file as torch.save writes it for a contiguous tensor [1, C, T].
std::string saved_tensor(const at::Tensor& tensor, const std::string& storage) {
  const auto number = [](int64_t value) { return "J" + test::little_endian(static_cast<int32_t>(value)); };
  const auto text = test::pickled_text;
  const std::string pickle =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((" +
      text("storage") + "ctorch\n" + storage + "\n" + text("0") + text("cpu") + number(tensor.numel()) + "tQ" +
      number(0) + "(" + number(1) + number(tensor.size(1)) + number(tensor.size(2)) + "t(" + number(tensor.numel()) +
      number(tensor.size(2)) + number(1) +
      "t\x89"
      "ccollections\nOrderedDict\n)RtR.";
  return test::zip_bytes({{"x/data.pkl", pickle}, {"x/data/0", test::bytes_of(tensor)}});
}

std::string index_json(const std::string& weight_map) {
  return R"({"metadata":{"total_size":1},"weight_map":)" + weight_map + "}";
}

void write_diffusers(const std::string& directory) {
  for (const char* part : kDiffusersParts) std::filesystem::create_directories(directory + "/" + part);
  const std::string file = "/diffusion_pytorch_model.safetensors";
  test::write_safetensors(directory + "/transformer" + file,
                          {{"proj_in_conv.weight", at::full({1}, 1.0)},
                           {"proj_out_conv.bias", at::full({1}, 2.0)},
                           {"layers.0.self_attn.to_q.weight", at::full({1}, 3.0)},
                           {"layers.0.cross_attn.to_out.0.weight", at::full({1}, 4.0)},
                           {"layers.0.cross_attn.norm_k.weight", at::full({1}, 5.0)}});
  test::write_safetensors(directory + "/condition_encoder" + file,
                          {{"null_condition_emb", at::full({1, 1, 2}, 6.0)},
                           {"lyric_encoder.layers.0.self_attn.to_v.weight", at::full({1}, 7.0)},
                           {"silence_latent", at::arange(6, at::kFloat).view({1, 3, 2})}});
  test::write_safetensors(directory + "/audio_tokenizer" + file, {{"quantizer.project_in.weight", at::full({1}, 8.0)}});
  test::write_safetensors(directory + "/audio_token_detokenizer" + file, {{"special_tokens", at::full({1}, 9.0)}});
}

}  // namespace

TEST("checkpoint: returns a tensor in the requested dtype, without a copy if stored in it") {
  const std::string directory = test::fixture_directory();
  const at::Tensor stored = at::randn({2, 3}).to(at::kBFloat16);
  test::write_safetensors(directory + "/model.safetensors", {{"layers.0.w", stored}});
  const auto checkpoint = Checkpoint::open(directory);
  const Weights layer = checkpoint.weights(kBfloat16).sub("layers").sub("0");
  EXPECT(layer.has("w") && !layer.has("v"));
  EXPECT(at::equal(layer.get("w", {2, 3}), stored));
  EXPECT_EQ(layer.get("w", {2, 3}).data_ptr(), layer.get("w", {2, 3}).data_ptr());
  EXPECT(at::equal(layer.get("w", {2, 3}, at::kFloat), stored.to(at::kFloat)));
  EXPECT(checkpoint.weights(kFloat32).sub("layers.0").get("w", {2, 3}).scalar_type() == at::kFloat);
}

TEST("checkpoint: reports directory, tensor and both shapes for a missing tensor or wrong shape") {
  const std::string directory = test::fixture_directory();
  test::write_safetensors(directory + "/model.safetensors", {{"norm.weight", at::zeros({4})}});
  const Weights norm = Checkpoint::open(directory).weights(kFloat32).sub("norm");
  EXPECT_THROWS(norm.get("weight", {5}), directory + ": tensor 'norm.weight' has shape [4], expected [5]");
  EXPECT_THROWS(norm.get("bias", {4}), directory + ": tensor 'norm.bias' is missing");
}

TEST("checkpoint: lists unused tensors, except rotary buffers") {
  const std::string directory = test::fixture_directory();
  const at::Tensor one = at::zeros({1});
  test::write_safetensors(directory + "/model.safetensors", {{"a", one}, {"b", one}, {"x.rotary_emb.inv_freq", one}});
  const auto checkpoint = Checkpoint::open(directory);
  checkpoint.weights(kFloat32).get("a", {1});
  EXPECT(checkpoint.unused() == std::vector<std::string>{"b"});
}

TEST("checkpoint: strips the prefix 'model.' from names and rejects names that are then equal") {
  const std::string directory = test::fixture_directory();
  test::write_safetensors(directory + "/model.safetensors",
                          {{"model.norm.weight", at::zeros({1})}, {"lm_head.weight", at::zeros({1})}});
  const Weights weights = Checkpoint::open(directory).weights(kFloat32);
  EXPECT(weights.has("norm.weight") && weights.has("lm_head.weight") && !weights.has("model.norm.weight"));
  test::write_safetensors(directory + "/model.safetensors", {{"model.w", at::zeros({1})}, {"w", at::zeros({1})}});
  EXPECT_THROWS(Checkpoint::open(directory), "tensor 'w' is stored twice");
}

TEST("checkpoint: chooses the file of a directory in the documented order") {
  const std::string directory = test::fixture_directory();
  EXPECT_THROWS(Checkpoint::open(directory), directory + ": no weights here");
  const auto value = [&] { return Checkpoint::open(directory).weights(kFloat32).get("w", {1}).item<double>(); };
  const auto write = [&](const std::string& name, double number) {
    test::write_safetensors(directory + "/" + name, {{"w", at::full({1}, number)}});
  };
  write("shard-d.safetensors", 4);
  test::write_file(directory + "/diffusion_pytorch_model.safetensors.index.json",
                   index_json(R"({"w":"shard-d.safetensors"})"));
  EXPECT_EQ(value(), 4.0);
  write("diffusion_pytorch_model.safetensors", 3);
  EXPECT_EQ(value(), 3.0);
  write("shard-m.safetensors", 2);
  test::write_file(directory + "/model.safetensors.index.json", index_json(R"({"w":"shard-m.safetensors"})"));
  EXPECT_EQ(value(), 2.0);
  write("model.safetensors", 1);
  EXPECT_EQ(value(), 1.0);
}

TEST("checkpoint: joins shards and rejects a broken index") {
  const std::string directory = test::fixture_directory();
  const std::string index = directory + "/model.safetensors.index.json";
  test::write_safetensors(directory + "/one.safetensors", {{"a", at::full({1}, 1.0)}, {"unlisted", at::zeros({1})}});
  test::write_safetensors(directory + "/two.safetensors", {{"b", at::full({1}, 2.0)}});
  test::write_file(index, index_json(R"({"a":"one.safetensors","b":"two.safetensors"})"));
  const Weights weights = Checkpoint::open(directory).weights(kFloat32);
  EXPECT_EQ(weights.get("a", {1}).item<double>() + weights.get("b", {1}).item<double>(), 3.0);

  test::write_file(index, index_json(R"({"b":"one.safetensors"})"));
  EXPECT_THROWS(Checkpoint::open(directory), "one.safetensors: there is no tensor 'b'");
  test::write_file(index, index_json(R"({"b":"three.safetensors"})"));
  EXPECT_THROWS(Checkpoint::open(directory), "three.safetensors: No such file");
  test::write_file(index, index_json(R"({"b":"../two.safetensors"})"));
  EXPECT_THROWS(Checkpoint::open(directory), "is not a plain file name");
  test::write_file(index, "{}");
  EXPECT_THROWS(Checkpoint::open(directory), "weight_map is missing");
  test::write_file(index, "weights");
  EXPECT_THROWS(Checkpoint::open(directory), "model.safetensors.index.json: not JSON");
}

TEST("checkpoint: maps the diffusers layout to original names") {
  const std::string directory = test::fixture_directory();
  write_diffusers(directory);
  const auto checkpoint = Checkpoint::open(directory);
  const Weights weights = checkpoint.weights(kFloat32);
  const std::vector<std::pair<const char*, double>> expected = {
      {"decoder.proj_in.1.weight", 1},
      {"decoder.proj_out.1.bias", 2},
      {"decoder.layers.0.self_attn.q_proj.weight", 3},
      {"decoder.layers.0.cross_attn.o_proj.weight", 4},
      {"decoder.layers.0.cross_attn.k_norm.weight", 5},
      {"encoder.lyric_encoder.layers.0.self_attn.v_proj.weight", 7},
      {"tokenizer.quantizer.project_in.weight", 8},
      {"detokenizer.special_tokens", 9}};
  for (const auto& [name, value] : expected) EXPECT_EQ(weights.get(name, {1}).item<double>(), value);
  EXPECT_EQ(weights.get("null_condition_emb", {1, 1, 2}).mean().item<double>(), 6.0);
  EXPECT(at::equal(read_silence_latent(checkpoint, 2), at::arange(6, at::kFloat).view({1, 3, 2})));
  EXPECT(checkpoint.unused().empty());

  std::filesystem::remove_all(directory + "/audio_tokenizer");
  EXPECT_THROWS(Checkpoint::open(directory), "sub-folder 'audio_tokenizer' of the diffusers model holds no weights");
}

TEST("checkpoint: rejects a checkpoint larger than memory with a one-line error, in any storage type") {
  const auto directory = test::fixture_directory();
  const auto path = directory + "/model.safetensors";
  constexpr uint64_t kBytes = uint64_t{1} << 43;
  const std::string header = R"({"w":{"dtype":"BF16","shape":[4194304,1048576],"data_offsets":[0,8796093022208]}})";
  test::write_file(path, test::safetensors_bytes(header, ""));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + kBytes);  // makes a sparse file
  const auto checkpoint = Checkpoint::open(directory);
  for (const WeightForm form : {WeightForm::kDense, WeightForm::kStored, WeightForm::kInt8, WeightForm::kInt4}) {
    try {
      checkpoint.require_memory({at::kCPU, at::kFloat, form});
      EXPECT(false);
    } catch (const Error& error) {
      EXPECT(error.code() == ErrorCode::kOutOfMemory);
      const std::string message = error.what();
      EXPECT(message.rfind(directory + ": ", 0) == 0 && message.find('\n') == std::string::npos);
    }
  }
}

TEST("silence latent: reads and transposes all frames of the file") {
  const at::Tensor stored = at::randn({1, 3, 5}), half = stored.to(at::kBFloat16);
  const at::Tensor silence = read_silence(saved_tensor(stored, "FloatStorage"), 3);
  EXPECT(at::equal(silence, stored.transpose(1, 2)));
  EXPECT(silence.is_contiguous());
  EXPECT(at::equal(read_silence(saved_tensor(half, "BFloat16Storage"), 3), half.to(at::kFloat).transpose(1, 2)));
}

TEST("silence latent: rejects a file unless it has one uncompressed tensor with the model's channels") {
  const std::string whole = saved_tensor(at::zeros({1, 2, 3}), "FloatStorage");
  EXPECT_THROWS(read_silence(whole, 5), "silence_latent.pt: the tensor has shape [1, 2, 3], expected [1, 5, frames]");
  EXPECT_THROWS(read_silence(test::zip_bytes({{"x/data/0", "data"}}), 2), "it has no entry 'data.pkl'");
  EXPECT_THROWS(read_silence(test::zip_bytes({{"x/data.pkl", "\x80\x02}."}}), 2), "key '' is missing");
  EXPECT_THROWS(read_silence(test::zip_bytes({{"x/data.pkl", "data"}}, 8), 2), "entry 'x/data.pkl' is compressed");
  EXPECT_THROWS(read_silence(std::string(100, 'x'), 2), "silence_latent.pt: not a readable zip archive");
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_THROWS(read_silence(whole.substr(0, size), 2), "silence_latent.pt");
  const std::string directory = test::fixture_directory();
  test::write_safetensors(directory + "/model.safetensors", {{"w", at::zeros({1})}});
  EXPECT_THROWS(read_silence_latent(Checkpoint::open(directory), 2), "silence_latent.pt: No such file");
}
